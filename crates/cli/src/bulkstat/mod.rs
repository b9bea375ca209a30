//! `holdfast bulkstat`: the attributes of all inodes, in the order of their numbers.

mod format;

use crate::complete;
use crate::control::{self, Answer, Request};
use crate::message::{Failure, Result};
use crate::target::Target;
use crate::volume::open_read_only;
use clap_complete::ArgValueCompleter;
use format::{Format, STANDARD};
use holdfast::engine::{Bulkstat, FileSystem};
use holdfast::{Visit, row, types::Attr};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

/// Bytes of lines sent to the output in one message.
const CHUNK: usize = 64 << 10;
/// Messages that may wait for the output.
const WAITING: usize = 8;

/// List the attributes of all inodes of a volume, mounted or not
///
/// Inodes are read in the order of their numbers, which is much faster than a walk by names. They
/// are not kept in memory, on either side. With several jobs, each prints runs of lines of its own
/// share, in turn; --jobs 1 keeps the order. Inodes that are made, removed or changed meanwhile may
/// be missing or shown in their old state.
///
/// A mount is asked through its daemon. Only root and the user that mounted it may do so.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// An image file, a block device, or a directory where one is mounted
    #[arg(value_name = "VOLUME|DIR", add = ArgValueCompleter::new(complete::targets))]
    target: PathBuf,

    /// Print one JSON object a line, times in nanoseconds since 1970
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// The line for each inode. %i number, %F type, %a permissions, %f mode in hexadecimal, %h
    /// links. %u owner, %g group, %s size, %b blocks of 512 bytes, %r device. Times: %X access, %Y
    /// modification, %Z change, %W birth. Also %%, \t, \n, \0, \\
    #[arg(long, value_name = "TEXT", default_value = STANDARD)]
    format: String,

    /// Threads that read at the same time; one for each processor if absent
    #[arg(short, long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let format = if arguments.json {
        Format::Json
    } else {
        Format::parse(&arguments.format).map_err(|wrong| Failure::new(wrong).about("--format"))?
    };
    let jobs = arguments
        .jobs
        .or_else(|| thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    match Target::of(&arguments.target)? {
        Target::Volume(image) => {
            let volume = open_read_only(&image)?;
            let fs = volume.core();
            let failed = |error: holdfast::types::Errno| {
                Failure::new(std::io::Error::from(error).to_string()).at(&image)
            };
            let scans = fs.bulkstats(jobs).map_err(failed)?;
            print_all(&format, scans, |scan, lines| {
                of_volume(fs, scan, lines).map_err(failed)
            })
        }
        Target::Mounted(root) => {
            let mount = control::open(&root)?;
            let request = Request::Split { parts: jobs };
            let Answer::Cuts(cuts) = control::ask(&mount, &root, &request)? else {
                return Err(control::other_answer(&root));
            };
            drop(mount);
            let begins = [0].into_iter().chain(cuts.iter().copied());
            let limits = cuts.iter().copied().chain([u64::MAX]);
            let scans = begins.zip(limits).collect();
            print_all(&format, scans, |(after, upto), lines| {
                of_mount(&root, after, upto, lines)
            })
        }
    }
}

/// The lines of one scanning thread that are not yet sent.
struct Lines<'l> {
    format: &'l Format,
    text: String,
    out: SyncSender<String>,
}

impl Lines<'_> {
    /// Adds a line; `false` once the receiver is gone.
    fn add(&mut self, attr: &Attr) -> bool {
        self.format.line(attr, &mut self.text);
        self.text.len() < CHUNK || self.send()
    }

    fn send(&mut self) -> bool {
        let text = std::mem::replace(&mut self.text, String::with_capacity(CHUNK + 512));
        self.out.send(text).is_ok()
    }
}

/// Runs each scan on a thread of its own, and prints the lines they send.
fn print_all<S: Send>(
    format: &Format,
    scans: Vec<S>,
    scan: impl Fn(S, &mut Lines<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let (sender, receiver) = mpsc::sync_channel::<String>(WAITING);
    thread::scope(|scope| {
        let threads: Vec<_> = scans
            .into_iter()
            .map(|share| {
                let (out, scan) = (sender.clone(), &scan);
                scope.spawn(move || {
                    let mut lines = Lines {
                        format,
                        text: String::new(),
                        out,
                    };
                    let scanned = scan(share, &mut lines);
                    // A receiver that is gone needs no more lines.
                    let _ = lines.send();
                    scanned
                })
            })
            .collect();
        drop(sender);
        let mut out = std::io::stdout().lock();
        let mut printed = Ok(());
        for text in receiver {
            printed = out.write_all(text.as_bytes());
            if printed.is_err() {
                break;
            }
        }
        // The loop has dropped the receiver, so no sender can block on it.
        let mut outcome = printed.and_then(|()| out.flush()).map_err(Failure::from);
        for thread in threads {
            let scanned = thread.join().unwrap_or_else(|_| {
                Err(Failure::new("a thread panicked: the list is incomplete")
                    .hint("--jobs 1 uses one thread"))
            });
            outcome = outcome.and(scanned);
        }
        outcome
    })
}

fn of_volume(
    fs: &FileSystem,
    mut scan: Bulkstat,
    lines: &mut Lines<'_>,
) -> holdfast::types::Result<()> {
    fs.bulkstat_attributes(&mut scan, |attr| {
        Ok(if lines.add(attr) {
            Visit::Continue
        } else {
            Visit::Stop
        })
    })
}

fn of_mount(root: &Path, mut after: u64, upto: u64, lines: &mut Lines<'_>) -> Result<()> {
    let mount = control::open(root)?;
    while after < upto {
        let rows = control::rows(&mount, root, &Request::Inodes { after, upto })?;
        if rows.is_empty() {
            break;
        }
        for row in rows.chunks_exact(row::ROW) {
            let attr = row::get(row).filter(|attr| attr.ino.0 > after);
            let attr = attr.ok_or_else(|| control::other_answer(root))?;
            after = attr.ino.0;
            if !lines.add(&attr) {
                return Ok(());
            }
        }
    }
    Ok(())
}
