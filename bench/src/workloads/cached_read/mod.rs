//! `cached-read`: threads read one cached file repeatedly, all the same range or each its own. They
//! do so alone, and while one more thread appends to the file or overwrites other pages of it.
//!
//! The readers' rate beside a writer of the same file is compared with their rate beside a writer
//! of another file. Memory and processors are equally busy in both cases, so the difference is due
//! to the file system. Both alternate several times in each phase, because the speed of the machine
//! varies over seconds.

mod layout;
mod phase;
mod reader;
mod task;
mod writer;

pub(crate) use task::Task;

use crate::about::About;
use crate::lent;
use crate::mode::Mode;
use crate::program::Program;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::rest;
use crate::targets::{Target, labels, parents};
use crate::team::{Done, Team};
use crate::workloads;
use anyhow::{Context, Result, ensure};
use clap::Args;
use phase::{DISTURBED_BYTES, Kind, Phase, Step};
use std::str::FromStr;
use task::Amount;

/// As the command line calls it.
pub(crate) const NAME: &str = "cached-read";

/// Reads of one cached file by many threads, alone and beside a writer
#[derive(Args, Clone, Debug)]
pub(crate) struct CachedReadArgs {
    /// What to run on: `mem:`, or `dir:PATH` for a directory of the host. The last one is what
    /// ratios compare with
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Target>,
    /// Thread counts; beside a writer, those of the readers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Let as many independent processes of one thread do the same, to judge the threads by
    #[arg(long)]
    processes: bool,
    /// Bytes of one read; `K` and `M` are understood
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', default_values = ["1", "4096", "1M"])]
    sizes: Vec<Size>,
    /// How long each phase is
    #[arg(long, value_name = "S", default_value_t = 0.5)]
    seconds: f64,
    /// Reads of each thread in each phase, instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    reads: Option<u64>,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Kinds of phases to run
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    phases: Vec<Kind>,
    #[command(flatten)]
    report: ReportArgs,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, shift) = match text.strip_suffix(['K', 'k']) {
            Some(digits) => (digits, 10),
            None => match text.strip_suffix(['M', 'm']) {
                Some(digits) => (digits, 20),
                None => (text, 0),
            },
        };
        let number: Option<usize> = digits.parse().ok();
        // A file of this size for each of many threads must still have a length.
        let bytes = number.filter(|&number| number > 0 && number <= (1 << 30) >> shift);
        let bytes = bytes.ok_or_else(|| "not a size from 1 to 1024M".to_owned())?;
        Ok(Self(bytes << shift))
    }
}

impl CachedReadArgs {
    /// The phases asked for, in the order they run.
    fn phases(&self) -> Vec<Phase> {
        let sizes: Vec<usize> = self.sizes.iter().map(|size| size.0).collect();
        let asked = |kind: &Kind| self.phases.is_empty() || self.phases.contains(kind);
        let kinds = Kind::ALL.into_iter().filter(asked);
        kinds.flat_map(|kind| kind.phases(&sizes)).collect()
    }

    fn amount(&self) -> Amount {
        self.reads
            .map_or(Amount::Seconds(self.seconds), Amount::Reads)
    }

    fn layout(&self) -> String {
        match self.amount() {
            Amount::Seconds(seconds) => format!("one file, {seconds} s per phase"),
            Amount::Reads(reads) => format!("one file, {reads} reads per thread and phase"),
        }
    }

    fn check(&self) -> Result<()> {
        ensure!(self.rounds > 0, "at least one round is needed");
        ensure!(!self.threads.contains(&0), "at least one thread is needed");
        ensure!(self.reads != Some(0), "at least one read is needed");
        ensure!(
            self.seconds > 0.0 && self.seconds < 1e6,
            "no time to measure in"
        );
        Ok(())
    }
}

/// Bytes of free memory that a writer may take while others read.
const APPENDED: u64 = 512 << 20;

/// One run of all phases on one target.
struct Run<'r> {
    label: &'r str,
    target: &'r Target,
    amount: Amount,
    mode: Mode,
    round: usize,
    phases: &'r [Phase],
}

impl Run<'_> {
    fn measure(&self, program: &Program, report: &mut Report) -> Result<()> {
        let (disturbed, alone): (Vec<_>, Vec<_>) =
            self.phases.iter().partition(|phase| phase.disturbed());
        let log_order = alone.chunks(1).map(|phase| (phase, 1)).collect();
        self.with_team(self.amount, log_order, program, report)?;
        match self.mode {
            Mode::Threads(_) => {
                let (amount, log_order) = self.amount.divided();
                let pairs = disturbed.chunk_by(Phase::same_kind);
                let pairs = pairs.map(|pair| (pair, log_order)).collect();
                self.with_team(amount, pairs, program, report)
            }
            // A writer shares its readers' process.
            Mode::Processes(_) => Ok(()),
        }
    }

    /// Lets a team do these phases, those of each group in turn, so many times.
    fn with_team(
        &self,
        amount: Amount,
        groups: Vec<(&[Phase], u32)>,
        program: &Program,
        report: &mut Report,
    ) -> Result<()> {
        let phases = || groups.iter().flat_map(|(group, _)| group.iter());
        let Some(largest) = phases().map(|phase| phase.bytes()).max() else {
            return Ok(());
        };
        let task = workloads::Task::CachedRead(Task {
            target: self.target.clone(),
            amount,
            largest,
            writer: phases().any(|phase| phase.disturbed()),
        });
        let mut team = Team::start(program, &task, self.mode).context(self.label.to_owned())?;
        for (group, log_order) in groups {
            let mut all = vec![Done::default(); group.len()];
            for turn in 1..=log_order {
                for (phase, all) in group.iter().zip(&mut all) {
                    report.doing(format!(
                        "{}: {phase}, round {}, {}",
                        self.label, self.round, self.mode
                    ));
                    let done = self.perform(*phase, &mut team)?;
                    *all = if turn == 1 { done } else { all.then(done) };
                }
            }
            for (phase, done) in group.iter().zip(&all) {
                report.add(self.record(*phase, done))?;
            }
        }
        team.dismiss()
    }

    fn perform(&self, phase: Phase, team: &mut Team<Step>) -> Result<Done> {
        let mut perform = |step| team.perform(step).context(self.label.to_owned());
        perform(Step::Prepare(phase))?;
        if phase.disturbed() {
            lent::populate(APPENDED);
        }
        perform(Step::Run(phase))
    }

    fn record(&self, phase: Phase, done: &Done) -> Record {
        let record = done.record(NAME, self.label, &phase, self.mode, self.round);
        Record {
            bytes: record.items * phase.bytes() as u64,
            writes: phase.disturbed().then_some(done.lap.work.aside),
            ..record
        }
    }
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense.
pub(crate) fn run(args: &CachedReadArgs) -> Result<()> {
    let mut report = Report::new(&args.report)?;
    measure(args, &Program::own(NAME)?, &mut report)?;
    report.finish()
}

/// Runs the workload for this report.
///
/// # Errors
/// As [`run`].
fn measure(args: &CachedReadArgs, program: &Program, report: &mut Report) -> Result<()> {
    args.check()?;
    let phases = args.phases();
    let modes = Mode::heats(&args.threads, args.processes).concat();
    let labels = labels(&args.targets);
    let _parents = parents(&args.targets)?;
    let undisturbed = phases.iter().filter(|phase| !phase.disturbed()).count();
    let each = modes.iter().map(|mode| match mode {
        Mode::Threads(_) => phases.len(),
        Mode::Processes(_) => undisturbed,
    });
    let expected = args.rounds * labels.len() * each.sum::<usize>();
    report.begin(About::now(args.layout(), args.rounds), expected);
    for round in 1..=args.rounds {
        for &mode in &modes {
            for (target, label) in args.targets.iter().zip(&labels) {
                let run = Run {
                    label,
                    target,
                    amount: args.amount(),
                    mode,
                    round,
                    phases: &phases,
                };
                run.measure(program, report)?;
                rest::after(target);
            }
        }
    }
    report.end(&format!(
        "{NAME}: {}, rounds: {}; reads per second (beside a writer: of {DISTURBED_BYTES} bytes)",
        args.layout(),
        args.rounds
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit_and_others_are_refused() {
        let read = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(read("1"), Ok(1));
        assert_eq!(read("4K"), Ok(4096));
        assert_eq!(read("1024m"), Ok(1 << 30));
        for text in ["0", "", "M", "1025M", "-1", "4096B"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
