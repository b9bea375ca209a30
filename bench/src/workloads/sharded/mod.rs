//! `sharded`: each thread has directories of many empty files, and makes, asks for, opens, lists
//! and removes them; then it makes and removes as many empty directories.
//!
//! Rounds are interleaved: each thread count runs on one target after the other before the next
//! round, so that a drift of the machine affects all targets. Threads and the processes that they
//! are compared with alternate phase by phase. A neighbour on the same hardware may halve the speed
//! from one tenth of a second to the next, and differences of a few hundredths must show.

mod paths;
mod phase;
mod shard;
mod task;

pub(crate) use paths::NumberedPath;
pub(crate) use task::Task;

use crate::about::About;
use crate::lent;
use crate::mode::Mode;
use crate::program::Program;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::rest;
use crate::targets::{Kept, Target, kept, labels, parents};
use crate::team::{Done, Team};
use crate::workloads;
use anyhow::{Context, Result, ensure};
use clap::Args;
use phase::{Grows, Phase, plans};

/// As the command line calls it.
pub(crate) const NAME: &str = "sharded";

/// Small empty files, directories of each thread's own: create, stat, open, walk, unlink
#[derive(Args, Clone, Debug)]
pub(crate) struct ShardedArgs {
    /// What to run on: `mem:`,
    /// `volume:PATH` for a volume on a new image file beside that path, or `dir:PATH` for a
    /// directory of the host. The last one is what ratios compare with
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Target>,
    /// Thread counts
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Let as many independent processes of one thread do the same, to judge the threads by
    #[arg(long)]
    processes: bool,
    /// Files of each thread; empty directories too
    #[arg(long, value_name = "F", default_value_t = 100_000)]
    files: usize,
    /// Files in one directory; without it, each thread has one directory
    #[arg(long, value_name = "D")]
    per_dir: Option<usize>,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Phases to report; what they need is made in any case
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// End each phase that writes with everything durable; so it is beside any `volume:`
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    report: ReportArgs,
}

impl ShardedArgs {
    /// The phases asked for.
    fn phases(&self) -> Vec<Phase> {
        if self.phases.is_empty() {
            let lasting = self.syncs();
            let all = Phase::all().into_iter();
            all.filter(|phase| lasting || !phase.is_cold()).collect()
        } else {
            self.phases.clone()
        }
    }

    fn layout(&self) -> String {
        let each = match self.per_dir {
            None => "one directory per thread".to_owned(),
            Some(count) => format!("directories of {count}"),
        };
        let synced = if self.syncs() {
            "; everything durable at the end of each phase that writes, and that counts"
        } else {
            ""
        };
        format!("{} files per thread, {each}{synced}", self.files)
    }

    /// Beside a volume everything is to be as durable as there.
    fn syncs(&self) -> bool {
        let volume = |target: &Target| matches!(target, Target::Volume(_));
        self.sync || self.targets.iter().any(volume)
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.files > 0 && self.rounds > 0,
            "at least one file and one round are needed"
        );
        ensure!(!self.threads.contains(&0), "at least one thread is needed");
        ensure!(
            self.per_dir != Some(0),
            "a directory has room for one file at least"
        );
        Ok(())
    }
}

/// One run of all phases on one target.
struct Run<'r> {
    label: &'r str,
    task: &'r Task,
    kept: Option<&'r Kept>,
    /// They take turns at each phase, each with a tree of its own.
    modes: &'r [Mode],
    round: usize,
    phases: &'r [Phase],
}

impl Run<'_> {
    /// The phases that were asked for, and those they need.
    fn measure(&self, program: &Program, report: &mut Report) -> Result<()> {
        for (plan, tells) in plans(&self.task.target) {
            let reported = |phase: &Phase| tells.contains(phase) && self.phases.contains(phase);
            let Some(last) = plan.iter().rposition(reported) else {
                continue;
            };
            let start = |&mode: &Mode| {
                let task = self.task_of(mode);
                let team = Team::start(program, &task, mode).context(self.label.to_owned())?;
                Ok((mode, team))
            };
            let mut teams = self.modes.iter().map(start).collect::<Result<Vec<_>>>()?;
            for (place, &phase) in plan[..=last].iter().enumerate() {
                let reported = reported(&phase);
                if !reported && place > 0 {
                    continue;
                }
                for (mode, team) in &mut teams {
                    let record = self.perform(phase, *mode, team, report)?;
                    if reported {
                        report.add(record)?;
                    }
                }
            }
            for (_, team) in teams {
                team.dismiss()?;
            }
        }
        Ok(())
    }

    /// Processes have volumes of their own, so they cannot share the one that is kept.
    fn task_of(&self, mode: Mode) -> workloads::Task {
        let kept = self.kept.filter(|_| mode.processes().is_none());
        workloads::Task::Sharded(Task {
            image: kept.map(Kept::image),
            ..self.task.clone()
        })
    }

    fn perform(
        &self,
        phase: Phase,
        mode: Mode,
        team: &mut Team<Phase>,
        report: &Report,
    ) -> Result<Record> {
        let (label, round) = (self.label, self.round);
        report.doing(format!("{label}: {phase}, round {round}, {mode}"));
        for &step in phase.before() {
            team.perform(step).context(label.to_owned())?;
        }
        if phase.takes_memory() {
            lent::populate(self.task.memory_of_a_thread() * mode.threads() as u64);
        }
        let done = team.perform(phase).context(label.to_owned())?;
        self.record(phase, mode, &done)
    }

    fn record(&self, phase: Phase, mode: Mode, done: &Done) -> Result<Record> {
        let met = done.lap.work.items;
        let files = self.task.files;
        let complete = match mode {
            Mode::Threads(threads) => phase.is_complete(met, threads, files),
            Mode::Processes(count) => phase.is_complete(met / count as u64, 1, files),
        };
        ensure!(complete, "{}: {phase} met {met} files", self.label);
        let grown = done.rss_bytes.saturating_sub(done.rss_before) as f64 / met as f64;
        let by = |what| {
            let tells = self.task.target.in_process() && phase.grows() == Some(what);
            tells.then_some(grown)
        };
        Ok(Record {
            rss_bytes_per_file: by(Grows::Files),
            rss_bytes_per_directory: by(Grows::Directories),
            ..done.record(NAME, self.label, &phase, mode, self.round)
        })
    }
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense.
pub(crate) fn run(args: &ShardedArgs) -> Result<()> {
    let mut report = Report::new(&args.report)?;
    measure(args, &Program::own(NAME)?, &mut report)?;
    report.finish()
}

/// Runs the workload for this report.
///
/// # Errors
/// As [`run`].
fn measure(args: &ShardedArgs, program: &Program, report: &mut Report) -> Result<()> {
    args.check()?;
    let phases = args.phases();
    let heats = Mode::heats(&args.threads, args.processes);
    let labels = labels(&args.targets);
    let _parents = parents(&args.targets)?;
    let kept = kept(&args.targets)?;
    let offered = args.targets.iter().map(|target| {
        let offered = phases.iter().filter(|phase| phase.offered_by(target));
        offered.count()
    });
    let modes = heats.iter().map(Vec::len).sum::<usize>();
    let expected = args.rounds * modes * offered.sum::<usize>();
    report.begin(About::now(args.layout(), args.rounds), expected);
    for round in 1..=args.rounds {
        for modes in &heats {
            for ((target, label), kept) in args.targets.iter().zip(&labels).zip(&kept) {
                let task = Task {
                    target: target.clone(),
                    image: None,
                    files: args.files,
                    per_dir: args.per_dir,
                    syncs: args.syncs(),
                };
                let run = Run {
                    label,
                    task: &task,
                    kept: kept.as_ref(),
                    modes,
                    round,
                    phases: &phases,
                };
                run.measure(program, report)?;
                rest::after(target);
            }
        }
    }
    report.end(&format!(
        "{NAME}: {}, rounds: {}; files per second",
        args.layout(),
        args.rounds
    ));
    Ok(())
}
