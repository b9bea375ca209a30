//! `holdfast warm`: reads a tree's attributes, and optionally content, into the caches of its file
//! system.

mod data;
mod pace;
mod queue;
mod report;
mod sample;
mod totals;
mod walk;

use crate::{
    message::{Failure, Result},
    mount::size::amount,
    output::Output,
    sys::set_io_priority,
};
use indicatif::{ProgressBar, ProgressStyle};
use pace::Pace;
use queue::Queue;
use report::Report;
use sample::Sample;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use totals::Totals;
use walk::Walk;

/// How often progress is updated.
const TICK: Duration = Duration::from_millis(200);
/// The nice value of this command.
const NICE: i32 = 10;
/// `--data` without a number.
const EVERYTHING: &str = "max";

/// Read the attributes of all files below a directory into the caches
///
/// DIR may be on any file system: NFS, FUSE, a disk. Each name's attributes are read once, many at
/// a time, in the order of inode numbers. With --data, content is read as well. The kernel or
/// another cache keeps the result as long as it likes: --check measures that.
///
/// Nothing is changed and no link is followed. A name that cannot be read is printed and skipped,
/// and the exit code is 1. SIGINT and SIGTERM stop the command, which still prints its report.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Read content too: the first BYTES of each file (without a number: all)
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = EVERYTHING)]
    data: Option<String>,

    /// Most concurrent requests
    #[arg(short, long, alias = "threads", value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,

    /// Order within a directory: by inode number, which is mostly the order on disk, or as listed
    #[arg(long, value_name = "ORDER", default_value = "inode", value_parser = ["inode", "none"])]
    sort: String,

    /// Enter other mounted file systems
    #[arg(long)]
    cross: bool,

    /// Descend at most NUMBER levels (0: only DIR's own names)
    #[arg(long, value_name = "NUMBER")]
    depth: Option<usize>,

    /// Most files a second
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,

    /// Use disks only while they are idle
    #[arg(long)]
    idle: bool,

    /// Read a thousand names again at the end, and print the times before and after
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let failed = |error: std::io::Error| Failure::new(error).at(&arguments.dir);
    let walk = plan(arguments)?;
    let signal = catch_stops().map_err(failed)?;
    be_polite(arguments.idle);
    let begun = Instant::now();
    let bar = bar(arguments);
    all(&walk, || {
        if signal.load(Ordering::Relaxed) > 0 {
            walk.stop.store(true, Ordering::Relaxed);
            walk.queue.end();
        }
        walk.show(&bar, begun.elapsed());
    })
    .map_err(failed)?;
    bar.finish_and_clear();
    let stopped = walk.stop.load(Ordering::Relaxed);
    let seconds = begun.elapsed().as_secs_f64();
    let mut report = Report::of(&arguments.dir, &walk, seconds, stopped);
    if let (Some(sample), false) = (&walk.sample, stopped) {
        report.check = sample.measure(&walk.root);
    }
    arguments.output.print(&report, &report)?;
    let signal = signal.load(Ordering::Relaxed);
    if signal > 0 {
        // The exit code of a process that a signal ended.
        std::process::exit(128 + signal as i32);
    }
    match report.failures() {
        0 => Ok(()),
        number => {
            let text = format!("{number} names could not be looked at");
            Err(Failure::new(text).at(&arguments.dir))
        }
    }
}

/// The walk for these arguments.
fn plan(arguments: &Arguments) -> Result<Walk> {
    let data = match arguments.data.as_deref() {
        None => None,
        Some(EVERYTHING) => Some(u64::MAX),
        Some(text) => {
            let bytes = amount(text);
            Some(bytes.map_err(|reason| Failure::new(reason).about("--data"))?)
        }
    };
    let root = walk::open_top(&arguments.dir);
    let threads = usize::from(arguments.jobs);
    Ok(Walk {
        root: root.map_err(|error| {
            let failure = Failure::new(error).at(&arguments.dir);
            failure.hint("name a directory: of a volume, one in its mount")
        })?,
        queue: Queue::new(threads),
        pace: Pace::new(arguments.rate),
        threads,
        totals: Totals::default(),
        sample: arguments.check.then(Sample::default),
        by_number: arguments.sort == "inode",
        cross: arguments.cross,
        depth: arguments.depth.unwrap_or(usize::MAX),
        data,
        stop: AtomicBool::new(false),
    })
}

/// Runs the walk on its threads until it is done; calls `look` every [`TICK`].
fn all(walk: &Walk, look: impl Fn()) -> io::Result<()> {
    thread::scope(|scope| {
        for index in 0..walk.threads {
            let worker = thread::Builder::new().name(format!("holdfast-warm-{index}"));
            let started = worker.spawn_scoped(scope, || walk.work());
            // Fewer threads are slower, but one is needed.
            if index == 0 {
                started?;
            }
        }
        while !walk.queue.wait_for_end(TICK) {
            look();
        }
        Ok(())
    })
}

/// Catches the signals that stop the work; the value becomes the signal that came.
pub(crate) fn catch_stops() -> io::Result<Arc<AtomicUsize>> {
    let came = Arc::default();
    for signal in [SIGINT, SIGTERM] {
        flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
    }
    Ok(came)
}

/// Lowers the CPU and I/O priority, if possible.
fn be_polite(idle: bool) {
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::info!(%error, "as urgent as others");
    }
    if let Err(error) = set_io_priority(idle) {
        tracing::info!(%error, "disks are used as by others");
    }
}

/// A progress bar, hidden unless standard error is a terminal.
fn bar(arguments: &Arguments) -> ProgressBar {
    if arguments.output.quiet || arguments.output.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}
