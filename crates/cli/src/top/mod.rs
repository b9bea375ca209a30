//! `holdfast top`: the activity of a mount.

mod look;
mod rates;
mod screen;
mod view;

use crate::complete;
use crate::message::{Failure, Result};
use crate::target::Target;
use clap_complete::ArgValueCompleter;
use holdfast_fuse::mount::mounts;
use look::{Polled, Poller};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least and most seconds between two polls.
const INTERVAL: (f64, f64) = (0.1, 3600.0);

/// Watch what a mount does: memory by class, reclaim, requests, the journal and the device
///
/// The display is updated each second, until q, Esc or ^C is pressed or the mount ends. By class it
/// shows bytes and their share of the counted memory, and for tree nodes the share of cache hits.
/// It also shows objects read again soon after eviction (refaults), freed (evicted), kept because
/// they were used again (promoted) and still to be scanned (deferred). Busy is the share of time in
/// which threads freed memory. By request it shows the rate, and the mean time of the measured
/// ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The mount point, or anything below it; the image or device that is mounted. Without this,
    /// the only mount of holdfast
    #[arg(value_name = "DIR|VOLUME", add = ArgValueCompleter::new(complete::targets))]
    target: Option<PathBuf>,

    /// Print one JSON object a line, for each interval
    #[arg(long)]
    json: bool,

    /// Seconds between two updates (0.1 to 3600)
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
}

fn interval(text: &str) -> std::result::Result<Duration, String> {
    let (least, most) = INTERVAL;
    match text.parse::<f64>() {
        Ok(seconds) if (least..=most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("not a number of seconds from {least} to {most}")),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = match &arguments.target {
        None => the_mount()?,
        Some(target) => match Target::of(target)? {
            Target::Mounted(root) => root,
            Target::Volume(image) => {
                return Err(Failure::new("is not mounted: it does nothing")
                    .at(&image)
                    .hint(format!("holdfast mount {} DIR", image.display())));
            }
        },
    };
    let poller = Poller::begin(root, arguments.interval)?;
    if arguments.json {
        return print(poller);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::new("standard output is no terminal")
            .hint("--json prints an object for each interval"));
    }
    let root = poller.root.clone();
    if let Some(ended) = screen::watch(poller)? {
        anstream::println!("{}: {ended}", root.display());
    }
    Ok(())
}

fn print(mut poller: Poller) -> Result<()> {
    let mut out = io::stdout().lock();
    loop {
        match poller.poll_next()? {
            Polled::Rates(rates) => {
                serde_json::to_writer(&mut out, &rates)?;
                writeln!(out)?;
                out.flush()?;
            }
            Polled::Ended(how) => {
                anstream::eprintln!("holdfast: {}: {how}", poller.root.display());
                return Ok(());
            }
        }
    }
}

/// The only mount of holdfast. Two mounts of one connection count once.
fn the_mount() -> Result<PathBuf> {
    let mut roots: Vec<PathBuf> = Vec::new();
    let mut connections = Vec::new();
    for mounted in mounts()?.into_iter().filter(|it| it.is_holdfast()) {
        let connection = mounted.connection();
        if !connections.contains(&connection) {
            connections.push(connection);
            roots.push(mounted.mount_point);
        }
    }
    one_of(roots)
}

fn one_of(mut roots: Vec<PathBuf>) -> Result<PathBuf> {
    match roots.len() {
        0 => Err(Failure::new("nothing is mounted by holdfast")
            .hint("holdfast mount SOURCE DIR; holdfast mount --help")),
        1 => Ok(roots.remove(0)),
        many => {
            let shown = |root: &Path| root.display().to_string();
            let all: Vec<String> = roots.iter().map(|root| shown(root)).collect();
            Err(
                Failure::new(format!("there are {many} mounts: {}", all.join(", ")))
                    .hint(format!("holdfast top {}", all[0])),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_seconds_within_bounds() {
        assert_eq!(interval("0.1"), Ok(Duration::from_millis(100)));
        assert_eq!(interval("3600"), Ok(Duration::from_secs(3600)));
        for wrong in ["0", "-1", "nan", "inf", "3601", "1s", ""] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_several_mounts_each_is_named() {
        let roots = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(one_of(roots(&["/a"])).unwrap(), PathBuf::from("/a"));
        let none = one_of(Vec::new()).unwrap_err().to_string();
        assert!(none.contains("nothing is mounted by holdfast"), "{none}");
        let many = one_of(roots(&["/a", "/b"])).unwrap_err().to_string();
        assert!(many.contains("there are 2 mounts: /a, /b"), "{many}");
        assert!(many.contains("holdfast top /a"), "{many}");
    }
}
