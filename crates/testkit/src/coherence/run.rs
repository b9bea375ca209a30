//! Writers, readers beside them, and checks of names that rest.

use super::change::Changer;
use super::look::{Looker, Seen, Wrong, of_kind, read_open, version};
use super::name::{Age, Kind, Name};
use crate::command::millis;
use crate::rng::Rng;
use clap::Parser;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Names in a directory.
const NAMES: usize = 40;
/// So long a name that is seen wrong at rest is looked at.
const LASTS_MAX: Duration = Duration::from_secs(5);
/// Files that a reader holds open.
const OPEN: usize = 32;
/// What is told of what is wrong, at most.
const TOLD_MAX: usize = 4;

/// Changes a directory below its mount, and looks at it through that. Exit code 1: something was
/// seen that was older than promised, of another file, or an error.
#[derive(Parser)]
pub(super) struct Plan {
    /// An empty directory that is mounted
    #[arg(long)]
    pub(super) source: PathBuf,
    /// Where it is mounted
    #[arg(long)]
    pub(super) mount: PathBuf,
    /// An empty directory of the same file system as the source, and not below it
    #[arg(long)]
    pub(super) aside: PathBuf,
    #[arg(long, default_value_t = 20_000)]
    pub(super) changes: u64,
    #[arg(long, default_value_t = 8_000)]
    pub(super) names: usize,
    #[arg(long, default_value_t = 3)]
    pub(super) readers: usize,
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// How old may be what is seen, in milliseconds
    #[arg(long, default_value = "1500", value_parser = millis)]
    pub(super) limit: Duration,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) changes: AtomicU64,
    pub(super) looks: AtomicU64,
    pub(super) checks: AtomicU64,
    pub(super) reads_of_open: AtomicU64,
    pub(super) wrong: AtomicU64,
    /// The age in microseconds of the oldest that was seen.
    pub(super) oldest: AtomicU64,
    /// The names at which something was wrong, by what was done.
    pub(super) told: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Counts {
    fn note(&self, seen: Seen) {
        match seen {
            Ok(age) => {
                let micros = age.as_micros() as u64;
                self.oldest.fetch_max(micros, Ordering::Relaxed);
            }
            Err(Wrong(what)) => {
                self.wrong.fetch_add(1, Ordering::Relaxed);
                // What was done, and the name.
                let mut parts = what.splitn(3, ": ");
                let (name, done) = (parts.next(), parts.next());
                let done = done.unwrap_or_default().to_owned();
                let mut told = self.told.lock();
                let of_kind = told.entry(done).or_default();
                let is_new = of_kind.insert(name.unwrap_or_default().to_owned());
                if is_new && of_kind.len() <= TOLD_MAX {
                    eprintln!("WRONG: {what}");
                }
            }
        }
    }
}

struct Run<'p> {
    plan: &'p Plan,
    names: Vec<Name>,
    versions: AtomicU64,
    /// Names that rest, and since when.
    resting: Mutex<VecDeque<(usize, Instant)>>,
    /// Names that may be changed.
    free: Mutex<Vec<usize>>,
    /// The name that is changed just now.
    hot: AtomicUsize,
    is_over: AtomicBool,
    counts: Counts,
}

/// Runs it.
///
/// # Errors
/// What the host answers to a change.
pub(super) fn run(plan: &Plan) -> io::Result<Counts> {
    let path = |number: usize| PathBuf::from(format!("{}/{number}", number / NAMES));
    let names: Vec<Name> = (0..plan.names)
        .map(|number| Name::new(&path(number)))
        .collect();
    for dir in 0..plan.names.div_ceil(NAMES) {
        fs::create_dir(plan.source.join(dir.to_string()))?;
    }
    let run = Run {
        plan,
        free: Mutex::new((0..names.len()).collect()),
        names,
        versions: AtomicU64::new(1),
        resting: Mutex::default(),
        hot: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        counts: Counts::default(),
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| run.write());
        for reader in 0..plan.readers {
            let run = &run;
            scope.spawn(move || run.read_hot(reader as u64));
        }
        let checker = scope.spawn(|| run.check());
        let written = writer
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        run.is_over.store(true, Ordering::Release);
        if checker.join().is_err() {
            return Err(io::Error::other("the checker panicked"));
        }
        written
    })?;
    Ok(run.counts)
}

impl Run<'_> {
    fn write(&self) -> io::Result<()> {
        let mut changer = Changer {
            source: self.plan.source.clone(),
            aside: self.plan.aside.clone(),
            versions: &self.versions,
            rng: Rng::new(self.plan.seed),
        };
        let mut rng = Rng::new(self.plan.seed + 1);
        let mut done = 0;
        while done < self.plan.changes {
            let next = {
                let mut free = self.free.lock();
                let at = rng.index(free.len());
                (!free.is_empty()).then(|| free.swap_remove(at))
            };
            let Some(next) = next else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            self.hot.store(next, Ordering::Release);
            for _ in 0..=rng.below(8) {
                changer.change(&self.names[next])?;
                done += 1;
                if rng.one_in(4) {
                    thread::yield_now();
                }
            }
            self.counts.changes.store(done, Ordering::Relaxed);
            self.resting.lock().push_back((next, Instant::now()));
        }
        Ok(())
    }

    fn looker(&self) -> Looker {
        Looker {
            mount: self.plan.mount.clone(),
            limit: self.plan.limit,
        }
    }

    /// Looks at what is changed just now, and at files that it has open.
    fn read_hot(&self, reader: u64) {
        let looker = self.looker();
        let mut rng = Rng::new(self.plan.seed + 100 + reader);
        let mut open: VecDeque<(usize, File)> = VecDeque::new();
        while !self.is_over.load(Ordering::Acquire) {
            let hot = self.hot.load(Ordering::Acquire);
            for _ in 0..4 {
                self.counts.note(looker.look(&self.names[hot], rng.bits()));
                self.counts.looks.fetch_add(1, Ordering::Relaxed);
            }
            if rng.one_in(4)
                && let Ok(file) = self.open(&looker, hot)
            {
                open.push_back((hot, file));
            }
            if open.len() > OPEN {
                open.pop_front();
            }
            if !open.is_empty() {
                let (number, file) = &open[rng.index(open.len())];
                self.counts.note(self.read_again(*number, file));
            }
        }
    }

    fn open(&self, looker: &Looker, number: usize) -> io::Result<File> {
        let path = looker.mount.join(&self.names[number].path);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        use std::os::unix::fs::OpenOptionsExt;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A file that is open has bytes that its name once had, whatever became of that.
    fn read_again(&self, number: usize, file: &File) -> Seen {
        self.counts.reads_of_open.fetch_add(1, Ordering::Relaxed);
        let name = &self.names[number];
        let begun = Instant::now();
        let bytes = file.metadata().and_then(|_| read_open(file));
        let during = (begun, Instant::now());
        let bytes = bytes
            .map_err(|error| Wrong(format!("{}: an open file: {error}", name.path.display())))?;
        let version = version(&bytes);
        match name.age(during, of_kind(Kind::File), |state| {
            version == Some(state.version)
        }) {
            Age::Was(_) => Ok(Duration::ZERO),
            // It may have been opened while it was made.
            Age::Never if bytes.is_empty() || version.is_none() => Ok(Duration::ZERO),
            Age::Never => Err(Wrong(format!(
                "{}: an open file: other bytes: {version:?}",
                name.path.display()
            ))),
        }
    }

    /// How long a name is seen wrong that rests.
    fn lasts(&self, looker: &Looker, number: usize) -> String {
        let begun = Instant::now();
        while looker.look_at_all(&self.names[number]).is_err() {
            if begun.elapsed() > LASTS_MAX {
                return format!("for more than {LASTS_MAX:?}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        format!("for {:?}", begun.elapsed())
    }

    /// What has rested as long as it may be seen late is seen as it is.
    fn check(&self) {
        let looker = Looker {
            limit: Duration::ZERO,
            ..self.looker()
        };
        loop {
            let next = self.resting.lock().pop_front();
            let Some((number, since)) = next else {
                if self.is_over.load(Ordering::Acquire) {
                    return;
                }
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            let rested = since.elapsed();
            thread::sleep(self.plan.limit.saturating_sub(rested));
            let seen = looker.look_at_all(&self.names[number]);
            self.counts.note(match seen {
                Err(Wrong(what)) => Err(Wrong(format!(
                    "{}; {}",
                    what.replacen(": ", ": at rest: ", 1),
                    self.lasts(&looker, number)
                ))),
                right => right,
            });
            self.counts.checks.fetch_add(1, Ordering::Relaxed);
            self.free.lock().push(number);
        }
    }
}
