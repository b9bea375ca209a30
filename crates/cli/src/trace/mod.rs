//! `holdfast trace`: what a daemon does, as it does it.

pub(crate) mod record;

use crate::control::{self, Answer, Request};
use crate::message::{Failure, Result};
use crate::target::{Target, is_mounted};
use record::Traced;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// So often the daemon is asked when it had nothing more to tell.
const EVERY: Duration = Duration::from_millis(100);

/// Watch what the daemon of a mount does
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Reclaim(ReclaimArguments),
}

/// Print how memory is freed, pass by pass, until stopped or the mount ends
///
/// Two lines for each pass over a class (metadata: inodes; names; content; nodes: of the volume's trees; kernel: what is asked back of it), when it begins and
/// when it ends, in the form of Linux' trace points mm_shrink_slab_start and mm_shrink_slab_end: scripts for those can read it.
/// `awk '/shrink_slab_end/ {print $23}'` prints what went in each. Only while somebody watches records are kept; what comes faster than it is read is left
/// out, and counted on standard error.
#[derive(Debug, clap::Args)]
struct ReclaimArguments {
    /// The mount point, or anything below it; the image or device that is mounted
    #[arg(value_name = "DIR|VOLUME")]
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
            // Another mount, in the place of the one that was watched.
            Ok(_) => return Ok(()),
            Err(_) if !is_mounted(root)? => return Ok(()),
            Err(failure) => return Err(failure),
        };
    }
}

/// Asks for records from this one on. Between two questions the mount is not in use.
fn ask(root: &Path, from: Option<u64>) -> Result<Traced> {
    let request = Request::Reclaim { from };
    match control::ask(&control::open(root)?, root, &request)? {
        Answer::Reclaim(traced) => Ok(traced),
        _ => Err(control::other_answer(root)),
    }
}
