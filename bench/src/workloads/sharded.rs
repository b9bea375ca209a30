//! `sharded`: each thread has a directory of many empty files, and makes, asks for, opens, lists
//! and removes them.
//!
//! Rounds are interleaved: each thread count runs on one target after the other before the next
//! round, so that whatever drifts in the machine drifts for all.

use crate::crew::Crew;
use crate::process::Process;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::sys;
use crate::targets::{DirectoryTree, MemoryTree, Session, Target, Tree, labels};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use holdfast_types::Errno;
use std::ffi::{CStr, CString};
use std::fmt;

const NAME: &str = "sharded";

/// Small empty files in one directory per thread: create, stat, open, walk, unlink
#[derive(Args, Clone, Debug)]
pub(crate) struct ShardedArgs {
    /// What to run on: `mem:`, or `dir:PATH` for a directory of the host. The last one is what
    /// ratios compare with
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Target>,
    /// Thread counts
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Files of each thread
    #[arg(long, value_name = "F", default_value_t = 100_000)]
    files: usize,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Phases to report; files are made and removed in any case
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    phases: Vec<Phase>,
    #[command(flatten)]
    report: ReportArgs,
}

/// What is done to every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phase {
    /// Make it, close it
    Create,
    /// Ask for its attributes by its path
    Stat,
    /// Open it, close it
    Open,
    /// List the directory with the attributes of each
    Walk,
    /// Remove it
    Unlink,
}

/// In the order they run.
const PHASES: [Phase; 5] = [
    Phase::Create,
    Phase::Stat,
    Phase::Open,
    Phase::Walk,
    Phase::Unlink,
];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Open => "open",
            Self::Walk => "walk",
            Self::Unlink => "unlink",
        })
    }
}

/// One thread's directory and files, as paths made beforehand.
struct Shard {
    dir: CString,
    files: Vec<CString>,
}

impl Shard {
    fn new(index: usize, files: usize) -> Result<Self> {
        // Names of 24 bytes.
        let path = |file| CString::new(format!("/t{index}/file-{file:019}"));
        Ok(Self {
            dir: CString::new(format!("/t{index}"))?,
            files: (0..files).map(path).collect::<Result<_, _>>()?,
        })
    }

    /// Does this phase's part; gives the number of files.
    fn run<S: Session>(&self, phase: Phase, session: &mut S) -> Result<u64> {
        match phase {
            Phase::Create => {
                session
                    .make_dir(&self.dir)
                    .context("cannot make a directory")?;
                self.each(phase, |path| session.create(path))
            }
            Phase::Stat => self.each(phase, |path| session.stat(path)),
            Phase::Open => self.each(phase, |path| session.open(path)),
            Phase::Walk => Ok(session.walk(&self.dir).context("walk")?),
            Phase::Unlink => self.each(phase, |path| session.unlink(path)),
        }
    }

    #[inline]
    fn each(&self, phase: Phase, mut call: impl FnMut(&CStr) -> Result<(), Errno>) -> Result<u64> {
        for path in &self.files {
            if let Err(error) = call(path) {
                bail!("{phase} {}: {error}", path.to_string_lossy());
            }
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        Ok(self.files.len() as u64)
    }
}

/// One run of all phases on one target.
struct Run<'r> {
    label: &'r str,
    round: usize,
    shards: &'r [Shard],
    phases: &'r [Phase],
}

impl Run<'_> {
    /// Runs the phases on a fresh tree.
    fn on<T: Tree>(&self, tree: T, report: &mut Report) -> Result<()> {
        // What earlier rounds left in the allocator would hide what this one takes.
        sys::trim_heap();
        let outcome = std::thread::scope(|scope| {
            let workers = self.shards.iter().map(|shard| {
                let mut session = tree.session();
                move |phase| shard.run(phase, &mut session)
            });
            let crew = Crew::hire(scope, workers)?;
            for phase in PHASES {
                let reported = self.phases.contains(&phase);
                if reported || phase == Phase::Create {
                    let record = self.phase::<T>(&crew, phase, report)?;
                    if reported {
                        report.add(record)?;
                    }
                }
            }
            Ok(())
        });
        let closed = tree.close();
        outcome.and(closed)
    }

    fn phase<T: Tree>(&self, crew: &Crew<Phase>, phase: Phase, report: &Report) -> Result<Record> {
        let threads = self.shards.len();
        let (label, round) = (self.label, self.round);
        report.doing(format!(
            "{label}: {phase}, round {round}, threads {threads}"
        ));
        let expected: usize = self.shards.iter().map(|shard| shard.files.len()).sum();
        let before = Process::Own.rss_bytes()?;
        let cpu_before = Process::Own.cpu_seconds()?;
        let lap = crew.perform(phase).with_context(|| self.label.to_owned())?;
        let cpu_seconds = Process::Own.cpu_seconds()? - cpu_before;
        let rss_bytes = Process::Own.rss_bytes()?;
        ensure!(
            lap.items == expected as u64,
            "{label}: {phase} met {} files instead of {expected}",
            lap.items
        );
        let grown = rss_bytes.saturating_sub(before) as f64 / lap.items as f64;
        Ok(Record {
            workload: NAME,
            target: label.to_owned(),
            phase: phase.to_string(),
            threads,
            round,
            items: lap.items,
            bytes: 0,
            seconds: lap.time.as_secs_f64(),
            cpu_seconds,
            rss_bytes,
            rss_bytes_per_file: (T::IN_PROCESS && phase == Phase::Create).then_some(grown),
            transport: None,
            requests: None,
        })
    }
}

/// Runs the workload and reports.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense.
pub(crate) fn run(args: &ShardedArgs) -> Result<()> {
    let phases = if args.phases.is_empty() {
        PHASES.to_vec()
    } else {
        args.phases.clone()
    };
    let runs = args.rounds * args.threads.len() * args.targets.len();
    let mut report = Report::new(&args.report, runs * phases.len())?;
    measure(args, &phases, &mut report)?;
    report.finish(&format!(
        "{NAME}: {} files per thread, rounds: {}; files per second",
        args.files, args.rounds
    ))
}

fn measure(args: &ShardedArgs, phases: &[Phase], report: &mut Report) -> Result<()> {
    ensure!(
        args.files > 0 && args.rounds > 0,
        "at least one file and one round are needed"
    );
    ensure!(!args.threads.contains(&0), "at least one thread is needed");
    let most = args.threads.iter().copied().max().unwrap_or(0);
    let shards = (0..most).map(|index| Shard::new(index, args.files));
    let shards: Vec<Shard> = shards.collect::<Result<_>>()?;
    let labels = labels(&args.targets);
    for round in 1..=args.rounds {
        for &threads in &args.threads {
            for (target, label) in args.targets.iter().zip(&labels) {
                let run = Run {
                    label,
                    round,
                    shards: &shards[..threads],
                    phases,
                };
                match target {
                    Target::Memory => run.on(MemoryTree::new(), report)?,
                    Target::Directory(path) => run.on(DirectoryTree::new(path)?, report)?,
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::path::Path;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ShardedArgs,
    }

    fn args(line: &[&str]) -> ShardedArgs {
        Line::parse_from(std::iter::once(&"bench").chain(line)).args
    }

    fn measured(args: &ShardedArgs, phases: &[Phase]) -> Vec<Record> {
        let mut report = Report::silent();
        measure(args, phases, &mut report).expect("measured");
        report.records().to_vec()
    }

    #[test]
    fn rounds_are_interleaved_and_every_phase_meets_every_file() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let dir = format!("dir:{}", folder.path().display());
        let args = args(&[
            "--target",
            "mem:",
            "--target",
            &dir,
            "--threads",
            "1,2",
            "--files",
            "200",
            "--rounds",
            "2",
        ]);
        let records = measured(&args, &PHASES);
        let mut expected = Vec::new();
        for round in [1, 2] {
            for threads in [1, 2] {
                for target in ["mem:", &dir] {
                    for phase in ["create", "stat", "open", "walk", "unlink"] {
                        expected.push((round, threads, target.to_owned(), phase.to_owned()));
                    }
                }
            }
        }
        let order: Vec<_> = records
            .iter()
            .map(|one| {
                (
                    one.round,
                    one.threads,
                    one.target.clone(),
                    one.phase.clone(),
                )
            })
            .collect();
        assert_eq!(order, expected);
        for record in &records {
            assert_eq!(record.items, 200 * record.threads as u64);
            assert!(
                record.seconds > 0.0 && record.cpu_seconds > 0.0,
                "{record:?}"
            );
            let tells = record.target == "mem:" && record.phase == "create";
            assert_eq!(record.rss_bytes_per_file.is_some(), tells);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }

    #[test]
    fn unasked_phases_are_neither_reported_nor_leave_files() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let dir = format!("dir:{}", folder.path().display());
        let args = args(&[
            "--target", &dir, "--files", "20", "--rounds", "1", "--phases", "walk",
        ]);
        let records = measured(&args, &args.phases);
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].phase.as_str(), records[0].items), ("walk", 20));
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }

    #[test]
    fn a_target_that_is_not_there_is_named_in_the_error() {
        let args = args(&["--target", "dir:/nonexistent/below", "--files", "1"]);
        let error = measure(&args, &PHASES, &mut Report::silent()).expect_err("refused");
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }

    #[test]
    fn a_walk_that_misses_a_file_is_an_error() {
        let tree = MemoryTree::new();
        let shard = Shard::new(0, 5).expect("paths");
        let mut session = tree.session();
        assert_eq!(shard.run(Phase::Create, &mut session).expect("made"), 5);
        session.unlink(&shard.files[3]).expect("there");
        assert_eq!(shard.run(Phase::Walk, &mut session).expect("listed"), 4);
        let error = shard
            .run(Phase::Stat, &mut session)
            .expect_err("one is missing");
        assert!(
            error
                .to_string()
                .starts_with("stat /t0/file-0000000000000000003:"),
            "{error}"
        );
    }

    #[test]
    fn names_have_24_bytes() {
        let shard = Shard::new(1, 1).expect("paths");
        let path = shard.files[0].to_str().expect("ASCII");
        assert_eq!(Path::new(path).file_name().expect("a name").len(), 24);
    }
}
