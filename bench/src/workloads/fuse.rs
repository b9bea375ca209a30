//! `fuse`: what a mount answers in a second, beside the null file system on the same transport.
//!
//! Both are mounted the same way, with nothing believed for any time, so that every call is a
//! request. Each round mounts each target anew: a transport can be lucky or not from start to
//! start.

use crate::about::About;
use crate::fuse::calls::{Client, OPS, Op, Step};
use crate::fuse::mounted::Mounted;
use crate::fuse::serve::{Kind, MountHow};
use crate::pool::{Pool, Work};
use crate::process::Process;
use crate::program::Program;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::targets::{Folder, Parent, labels};
use anyhow::{Context, Error, Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const NAME: &str = "fuse";

/// Requests a second through a mount, beside the null file system on the same transport
#[derive(Args, Clone, Debug)]
pub(crate) struct FuseArgs {
    /// What to measure: `null`, `mem`, or `dir:PATH` for a mount that is there already. The last
    /// one is what ratios compare with
    #[arg(long = "target", value_name = "TARGET", default_values = ["mem", "null"])]
    targets: Vec<Target>,
    /// Operations
    #[arg(long, value_name = "OP,…", value_delimiter = ',')]
    ops: Vec<Op>,
    /// Numbers of client threads
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// How long to measure each operation, each time
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f64,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Calls of each thread between two looks at the clock
    #[arg(long, value_name = "N", default_value_t = 2000)]
    batch: usize,
    #[command(flatten)]
    how: MountHow,
    #[command(flatten)]
    report: ReportArgs,
}

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// A file system that is mounted for the measuring.
    Own(Kind),
    /// A directory of a mount that is there already.
    Directory(PathBuf),
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("dir:").filter(|path| !path.is_empty()) {
            return Ok(Self::Directory(path.into()));
        }
        match Kind::from_str(text.strip_suffix(':').unwrap_or(text), false) {
            Ok(kind) if kind != Kind::Slow => Ok(Self::Own(kind)),
            _ => bail!("not a target: `{text}` (known are `null`, `mem` and `dir:PATH`)"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(kind) => kind.fmt(f),
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

/// All measurements of one target in one round.
struct Run<'r> {
    args: &'r FuseArgs,
    ops: &'r [Op],
    label: &'r str,
    round: usize,
    mounted: Option<Mounted>,
}

impl Run<'_> {
    fn below(&mut self, root: &Path, report: &mut Report) -> Result<()> {
        let root = File::open(root)?;
        for &threads in &self.args.threads {
            let clients = (0..threads).map(|index| Client::new(&root, index, self.args.batch));
            let clients: Vec<Client> = clients.collect::<Result<_>>()?;
            std::thread::scope(|scope| {
                let workers = clients
                    .into_iter()
                    .map(|mut client| move |step| client.step(step).map(Work::from));
                let pool = Pool::hire(scope, 0, workers)?;
                for &op in self.ops {
                    report.doing(format!(
                        "{}: {op}, round {}, threads {threads}",
                        self.label, self.round
                    ));
                    report.add(self.measure(&pool, op, threads)?)?;
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// Batches until they have taken long enough; only they are counted.
    fn measure(&mut self, pool: &Pool<Step>, op: Op, threads: usize) -> Result<Record> {
        let wanted = Duration::from_secs_f64(self.args.seconds);
        let (mut time, mut items) = (Duration::ZERO, 0);
        let (mut cpu_seconds, mut requests) = (0.0, self.mounted.as_ref().map(|_| 0));
        while time < wanted {
            if op.prepares() {
                pool.perform(Step::Prepare(op)).context("preparing")?;
            }
            let before = self.used()?;
            let lap = pool.perform(Step::Batch(op))?;
            let after = self.used()?;
            if op.leaves() {
                pool.perform(Step::Clear(op)).context("clearing up")?;
            }
            time += lap.time;
            items += lap.work.items;
            cpu_seconds += after.0 - before.0;
            requests = requests.map(|sum: u64| sum + (after.1 - before.1));
        }
        ensure!(items > 0, "no calls");
        let server = self.mounted.as_ref().map_or(Process::Own, Mounted::process);
        Ok(Record {
            workload: NAME.to_owned(),
            target: self.label.to_owned(),
            phase: op.to_string(),
            threads,
            round: self.round,
            items,
            bytes: items * op.bytes(),
            seconds: time.as_secs_f64(),
            cpu_seconds,
            rss_bytes: server.rss_bytes()?,
            transport: self
                .mounted
                .as_ref()
                .map(|mounted| mounted.transport().to_owned()),
            requests,
            ..Record::default()
        })
    }

    /// Processor time of client and server, requests served.
    fn used(&mut self) -> Result<(f64, u64)> {
        let own = Process::Own.cpu_seconds()?;
        match &mut self.mounted {
            None => Ok((own, 0)),
            Some(mounted) => Ok((own + mounted.process().cpu_seconds()?, mounted.requests()?)),
        }
    }
}

/// Runs the workload and reports.
///
/// # Errors
/// What cannot be mounted; the first call that failed; arguments that make no sense.
pub(crate) fn run(args: &FuseArgs) -> Result<()> {
    let ops = if args.ops.is_empty() {
        OPS.to_vec()
    } else {
        args.ops.clone()
    };
    let runs = args.rounds * args.threads.len() * args.targets.len();
    let mut report = Report::new(&args.report)?;
    let about = About::now(format!("{} s per operation", args.seconds), args.rounds);
    report.begin(about, runs * ops.len());
    measure(args, &ops, &Program::own(NAME)?, &mut report)?;
    let transports = |record: &Record| record.transport.clone();
    let mut ways: Vec<String> = report.records().iter().filter_map(transports).collect();
    ways.sort_unstable();
    ways.dedup();
    let over = if ways.is_empty() {
        "mounts at hand".to_owned()
    } else {
        ways.join(" and ")
    };
    report.end(&format!(
        "{NAME}: requests over {over}, {} s each, rounds: {}; calls per second",
        args.seconds, args.rounds
    ));
    report.finish()
}

fn measure(args: &FuseArgs, ops: &[Op], program: &Program, report: &mut Report) -> Result<()> {
    ensure!(
        args.batch > 0 && args.rounds > 0,
        "at least one call and one round are needed"
    );
    ensure!(
        args.seconds > 0.0 && args.seconds < 1e6,
        "no time to measure in"
    );
    ensure!(!args.threads.contains(&0), "at least one thread is needed");
    let labels = labels(&args.targets);
    for round in 1..=args.rounds {
        for (target, label) in args.targets.iter().zip(&labels) {
            let mut run = Run {
                args,
                ops,
                label,
                round,
                mounted: None,
            };
            match target {
                Target::Own(kind) => {
                    let mounted = Mounted::start(program, *kind, args.how)?;
                    let root = mounted.path().to_owned();
                    run.mounted = Some(mounted);
                    run.below(&root, report)?;
                    run.mounted.take().map_or(Ok(()), Mounted::stop)?;
                }
                Target::Directory(path) => {
                    let _parent = Parent::ready(path)?;
                    let folder = Folder::fresh_in(path)?;
                    run.below(folder.path(), report)?;
                    folder.close()?;
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

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FuseArgs,
    }

    fn args(line: &[&str]) -> FuseArgs {
        Line::parse_from(std::iter::once(&"bench").chain(line)).args
    }

    #[test]
    fn ours_is_compared_with_the_null_file_system_unless_told_otherwise() {
        assert_eq!(
            args(&[]).targets,
            [Target::Own(Kind::Memory), Target::Own(Kind::Null)]
        );
        let told = args(&["--target", "dir:/x", "--target", "null"]).targets;
        assert_eq!(
            told,
            [Target::Directory("/x".into()), Target::Own(Kind::Null)]
        );
        assert!("dir:".parse::<Target>().is_err() && "nul".parse::<Target>().is_err());
    }

    #[test]
    fn a_directory_is_measured_in_whole_batches_until_the_time_is_over() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
        let target = format!("dir:{}", folder.path().display());
        let args = args(&[
            "--target",
            &target,
            "--seconds",
            "0.01",
            "--rounds",
            "2",
            "--threads",
            "2",
            "--batch",
            "70",
        ]);
        let mut report = Report::silent();
        let program = Program::own(NAME).expect("own path");
        measure(&args, &[Op::Stat, Op::Read4k], &program, &mut report).expect("measured");
        let records = report.records();
        let phases: Vec<_> = records
            .iter()
            .map(|one| (one.round, one.phase.as_str()))
            .collect();
        assert_eq!(
            phases,
            [(1, "stat"), (1, "read4k"), (2, "stat"), (2, "read4k")]
        );
        for record in records {
            assert!(record.items > 0 && record.items % 140 == 0, "{record:?}");
            assert!(
                record.seconds >= 0.01 && record.requests.is_none(),
                "{record:?}"
            );
        }
        assert_eq!(records[1].bytes, records[1].items * 4096);
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }
}
