//! `holdfast trace`: events of a daemon as they happen.

pub(crate) mod record;

use crate::complete;
use crate::control::{self, Answer, Request};
use crate::message::{Failure, Result};
use crate::target::{Target, is_mounted};
use clap_complete::ArgValueCompleter;
use record::Traced;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Pause between two questions when the daemon had no more records.
const EVERY: Duration = Duration::from_millis(100);

/// Trace events of the daemon of a mount
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Reclaim(ReclaimArguments),
}

/// Print each reclaim pass, until stopped or the mount ends
///
/// Each pass over a class prints two lines, at its begin and its end. Classes are metadata
/// (inodes), names, content, nodes (of the volume's trees) and kernel (inodes that the kernel
/// holds). The lines have the form of Linux' trace points mm_shrink_slab_start and
/// mm_shrink_slab_end, so that scripts for those can read them.
/// `awk '/shrink_slab_end/ {print $23}'` prints the number of freed objects. Records are kept only
/// while a trace runs. Records that come faster than they are read are dropped, and counted on
/// standard error.
#[derive(Debug, clap::Args)]
struct ReclaimArguments {
    /// The mount point, or anything below it; the image or device that is mounted
    #[arg(value_name = "DIR|VOLUME", add = ArgValueCompleter::new(complete::targets))]
    target: PathBuf,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let What::Reclaim(reclaim) = &arguments.what;
    match Target::of(&reclaim.target)? {
        Target::Mounted(root) => watch(&root, reclaim.json),
        Target::Volume(image) => Err(Failure::new("is not mounted: nothing is in memory")
            .at(&image)
            .hint(format!("holdfast mount {} DIR", image.display()))),
    }
}

fn watch(root: &Path, json: bool) -> Result<()> {
    let mut traced = ask(root, None)?;
    let pid = traced.pid;
    let mut out = anstream::stdout();
    loop {
        if traced.missed > 0 {
            anstream::eprintln!("holdfast: {} records came too fast", traced.missed);
        }
        for record in &traced.records {
            match json {
                true => writeln!(out, "{}", serde_json::to_string(record)?)?,
                false => writeln!(out, "{record}")?,
            }
        }
        if traced.records.is_empty() {
            out.flush()?;
            sleep(EVERY);
        }
        traced = match ask(root, Some(traced.next)) {
            Ok(traced) if traced.pid == pid => traced,
            // Another mount has replaced the one that was watched.
            Ok(_) => return Ok(()),
            Err(_) if !is_mounted(root)? => return Ok(()),
            Err(failure) => return Err(failure),
        };
    }
}

/// Asks for records from `from` on. The mount is opened for each question, so it is not busy
/// between two.
fn ask(root: &Path, from: Option<u64>) -> Result<Traced> {
    let request = Request::Reclaim { from };
    match control::ask(&control::open(root)?, root, &request)? {
        Answer::Reclaim(traced) => Ok(traced),
        _ => Err(control::other_answer(root)),
    }
}
