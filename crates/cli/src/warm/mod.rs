//! `holdfast warm`: brings a tree's attributes, and content if asked for, into the caches of the file system it lies on.

mod data;
mod pace;
mod queue;
mod report;
mod sample;
mod walk;

use crate::{
    message::{Failure, Result},
    mount::size::parse_amount,
    sys::set_io_priority,
};
use indicatif::{ProgressBar, ProgressStyle};
use pace::Pace;
use queue::Queue;
use report::{Report, Totals};
use sample::Sample;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::{
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use walk::Walk;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);
/// How much this command yields to others where processors are scarce.
const NICE: i32 = 10;
/// `--data` without a number.
const EVERYTHING: &str = "max";

/// Bring the attributes of all files below a directory into its file system's caches
///
/// Any directory will do: of NFS, of a FUSE file system, of a disk. Every name is asked for its attributes once, many at a
/// time where that is faster, in the order in which they lie there; with --data content is read as well. What was
/// warmed stays for as long as the kernel, or another cache, keeps it: --check tells.
///
/// Nothing is changed and no link followed. What may not be looked at is told, and passed over; the exit code is 1 then.
/// SIGINT and SIGTERM stop it, with a report of what was done.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Read content too, the first BYTES of each file (without a number: all)
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = EVERYTHING)]
    data: Option<String>,

    /// Most files at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Order within a directory: by inode number, which is mostly that of the disk, or as it is listed
    #[arg(long, value_name = "ORDER", default_value = "inode", value_parser = ["inode", "none"])]
    sort: String,

    /// Enter other file systems that are mounted below
    #[arg(long)]
    cross: bool,

    /// Go down so many directories at most (0: only DIR's own names)
    #[arg(long, value_name = "NUMBER")]
    depth: Option<usize>,

    /// Ask for so many files a second at most
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,

    /// Use disks only while nobody else does
    #[arg(long)]
    idle: bool,

    /// Ask a thousand names once more at the end, and tell how long an answer took before and after
    #[arg(long)]
    check: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let failed = |error: std::io::Error| Failure::new(error.to_string()).at(&arguments.dir);
    let walk = plan(arguments)?;
    let signals = Stops::begin().map_err(failed)?;
    be_polite(arguments.idle);
    let begun = Instant::now();
    let bar = bar(arguments);
    all(&walk, usize::from(arguments.threads), || {
        if signals.came().is_some() {
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
        report.check = sample.ask_again(&walk.root);
    }
    if arguments.json {
        let line = serde_json::to_string(&report)?;
        writeln!(anstream::stdout(), "{line}")?;
    } else if !arguments.quiet {
        write!(anstream::stdout(), "{report}")?;
    }
    if let Some(signal) = signals.came() {
        // As a process that a signal ended.
        std::process::exit(128 + signal);
    }
    match report.failures() {
        0 => Ok(()),
        number => {
            let text = format!("{number} names could not be looked at");
            Err(Failure::new(text).at(&arguments.dir))
        }
    }
}

/// What is asked for, and nothing done yet.
fn plan(arguments: &Arguments) -> Result<Walk> {
    let data = match arguments.data.as_deref() {
        None => None,
        Some(EVERYTHING) => Some(u64::MAX),
        Some(text) => {
            let bytes = parse_amount(text, None);
            Some(bytes.map_err(|reason| Failure::new(reason).about("--data"))?)
        }
    };
    let root = walk::open_top(&arguments.dir);
    let threads = usize::from(arguments.threads);
    Ok(Walk {
        root: root.map_err(|error| {
            let failure = Failure::new(error.to_string()).at(&arguments.dir);
            failure.hint("name a directory: of a volume, one in its mount")
        })?,
        queue: Queue::new(threads),
        pace: Pace::new(threads, arguments.rate),
        totals: Totals::default(),
        sample: arguments.check.then(Sample::default),
        by_number: arguments.sort == "inode",
        cross: arguments.cross,
        depth: arguments.depth.unwrap_or(usize::MAX),
        data,
        stop: AtomicBool::new(false),
    })
}

/// Works with so many threads until all is done; `look` is called now and then.
fn all(walk: &Walk, threads: usize, look: impl Fn()) -> io::Result<()> {
    thread::scope(|scope| {
        for index in 0..threads {
            let worker = thread::Builder::new().name(format!("holdfast-warm-{index}"));
            let started = worker.spawn_scoped(scope, move || walk.work(index));
            // With fewer it takes longer; without any it is not done.
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

/// The signals that stop it, and whether each came.
struct Stops([(i32, Arc<AtomicBool>); 2]);

impl Stops {
    fn begin() -> io::Result<Self> {
        let stops = [SIGINT, SIGTERM].map(|signal| (signal, Arc::default()));
        for (signal, came) in &stops {
            signal_hook::flag::register(*signal, Arc::clone(came))?;
        }
        Ok(Self(stops))
    }

    fn came(&self) -> Option<i32> {
        let mut stops = self.0.iter();
        let found = stops.find(|(_, came)| came.load(Ordering::Relaxed));
        found.map(|(signal, _)| *signal)
    }
}

/// Others come first. Where that cannot be had, they do not.
fn be_polite(idle: bool) {
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::info!(%error, "as urgent as others");
    }
    if let Err(error) = set_io_priority(idle) {
        tracing::info!(%error, "disks are used as by others");
    }
}

/// A bar where somebody looks.
fn bar(arguments: &Arguments) -> ProgressBar {
    if arguments.quiet || arguments.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}

/// The directory that all is below.
type Top = File;
