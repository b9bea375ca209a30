//! `sparse`: writes of 1 KiB to places that are far apart, or that fill a file in random order; and
//! small files by many writers. Each thread writes a file of its own, and each phase ends with
//! fsync(2) (the small files with a sync), which counts.
//!
//! An allocator fails here by its slope, not by its mean. So the records hold the time of a write
//! by its position among all writes, and the number of extents of the file.

mod pattern;
mod phase;
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
use crate::targets::{Kept, Target, kept, labels, parents};
use crate::team::Team;
use crate::workloads;
use anyhow::{Context, Result, ensure};
use clap::Args;
use pattern::WRITE;
use phase::{Figure, Phase, Step};
use task::Amounts;
use writer::SMALL;

/// As the command line calls it.
pub(crate) const NAME: &str = "sparse";

/// Equal parts of the writes, of which the time is told.
const SLICES: usize = 50;

/// Small writes, scattered over a file or filling it in random order; small files by many writers
#[derive(Args, Clone, Debug)]
pub(crate) struct SparseArgs {
    /// What to run on: `mem:`, `volume:PATH` for a volume on a new image file beside that path, or
    /// `dir:PATH` for a directory of the host. The last one is what ratios compare with
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Target>,
    /// Thread counts; the small files have their own
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Scattered writes of each thread
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    writes: u64,
    /// MiB that are filled, by all threads together
    #[arg(long, value_name = "MIB", default_value_t = 5 << 10)]
    fill: u64,
    /// Writers of small files
    #[arg(long, value_name = "N", default_value_t = 64)]
    writers: usize,
    /// Small files of each of them
    #[arg(long, value_name = "N", default_value_t = 2000)]
    small: u64,
    /// MiB of memory that the file system of a `volume:` may take for content; without it as much
    /// as any: an eighth of the machine's. What is filled in a directory of the host may take all
    /// that is free
    #[arg(long, value_name = "MIB")]
    cache: Option<u64>,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Phases to run
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    phases: Vec<Phase>,
    #[command(flatten)]
    report: ReportArgs,
}

impl SparseArgs {
    /// The phases asked for, in the order they run.
    fn phases(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| self.phases.is_empty() || self.phases.contains(phase);
        Phase::ALL.into_iter().filter(asked).collect()
    }

    /// Every phase with the number of its threads.
    fn runs(&self) -> Vec<(Phase, usize)> {
        let of = |phase: Phase| -> Vec<(Phase, usize)> {
            match phase {
                Phase::SmallFiles => vec![(phase, self.writers)],
                _ => self.threads.iter().map(|&count| (phase, count)).collect(),
            }
        };
        self.phases().into_iter().flat_map(of).collect()
    }

    fn amounts(&self, threads: usize) -> Amounts {
        Amounts {
            scattered: self.writes,
            fill: (self.fill << 20) / threads as u64,
            small: self.small,
        }
    }

    fn layout(&self) -> String {
        let cache = self.cache.map(|most| format!("volumes cache {most} MiB; "));
        format!(
            "{} scattered writes per thread, {} MiB filled, {} small files of each of {} writers; {}\
             everything durable at the end of each phase, and that counts",
            self.writes,
            self.fill,
            self.small,
            self.writers,
            cache.unwrap_or_default()
        )
    }

    fn check(&self) -> Result<()> {
        ensure!(self.rounds > 0, "at least one round is needed");
        ensure!(
            !self.threads.contains(&0) && self.writers > 0,
            "at least one thread is needed"
        );
        ensure!(
            (1..1 << 32).contains(&self.writes) && self.small > 0,
            "at least one write is needed, and fewer than 2^32"
        );
        ensure!((1..1 << 22).contains(&self.fill), "nothing to fill");
        ensure!(
            self.cache.is_none_or(|most| most < 1 << 32),
            "--cache is in MiB: less than 2^32"
        );
        Ok(())
    }
}

/// One phase on one target.
struct Run<'r> {
    label: &'r str,
    target: &'r Target,
    kept: Option<&'r Kept>,
    cache: Option<u64>,
    amounts: Amounts,
    mode: Mode,
    round: usize,
    phase: Phase,
}

impl Run<'_> {
    fn measure(&self, program: &Program, report: &mut Report) -> Result<()> {
        let phase = self.phase;
        report.doing(format!(
            "{}: {phase}, round {}, {}",
            self.label, self.round, self.mode
        ));
        let task = workloads::Task::Sparse(Task {
            target: self.target.clone(),
            image: self.kept.map(Kept::image),
            cache: self.cache,
            amounts: self.amounts,
        });
        let mut team = Team::start(program, &task, self.mode).context(self.label.to_owned())?;
        let mut perform = |step| team.perform(step).context(self.label.to_owned());
        perform(Step::Prepare(phase))?;
        lent::populate(self.amounts.memory(phase) * self.mode.threads() as u64);
        let done = perform(Step::Run(phase))?;
        perform(Step::Check(phase))?;
        let each = self.mode.threads() as f64;
        let mut tell = |figure| -> Result<f64> {
            let figure = perform(Step::Tell(figure))?;
            Ok(figure.lap.work.items as f64 / each)
        };
        let nanos = tell(Figure::Sync)?;
        let extents = tell(Figure::Extents)?;
        let mut write_nanos = Vec::new();
        if phase != Phase::SmallFiles {
            for part in 0..SLICES {
                write_nanos.push(tell(Figure::Slice(part))? / 1000.0);
            }
            // Few writes make fewer parts.
            write_nanos.retain(|&nanos| nanos > 0.0);
        }
        let record = done.record(NAME, self.label, &phase, self.mode, self.round);
        let bytes = if phase == Phase::SmallFiles {
            SMALL
        } else {
            WRITE
        };
        report.add(Record {
            bytes: record.items * bytes as u64,
            fsync_seconds: Some(nanos / 1e9),
            extents_per_file: (extents > 0.0).then_some(extents),
            write_nanos: (!write_nanos.is_empty()).then_some(write_nanos),
            ..record
        })?;
        team.dismiss()
    }
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense.
pub(crate) fn run(args: &SparseArgs) -> Result<()> {
    let mut report = Report::new(&args.report)?;
    measure(args, &Program::own(NAME)?, &mut report)?;
    report.finish()
}

/// Runs the workload for this report.
///
/// # Errors
/// As [`run`].
fn measure(args: &SparseArgs, program: &Program, report: &mut Report) -> Result<()> {
    args.check()?;
    let (runs, labels) = (args.runs(), labels(&args.targets));
    let _parents = parents(&args.targets)?;
    let kept = kept(&args.targets)?;
    let expected = args.rounds * runs.len() * labels.len();
    report.begin(About::now(args.layout(), args.rounds), expected);
    for round in 1..=args.rounds {
        for &(phase, threads) in &runs {
            for ((target, label), kept) in args.targets.iter().zip(&labels).zip(&kept) {
                let run = Run {
                    label,
                    target,
                    kept: kept.as_ref(),
                    cache: args.cache.map(|most| most << 20),
                    amounts: args.amounts(threads),
                    mode: Mode::Threads(threads),
                    round,
                    phase,
                };
                run.measure(program, report)?;
                rest::after(target);
            }
        }
    }
    report.end(&format!(
        "{NAME}: {}, rounds: {}; writes of {WRITE} bytes (files of {SMALL}) per second",
        args.layout(),
        args.rounds
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    #[test]
    fn small_files_have_their_own_number_of_writers() {
        let line = "--target mem: --threads 1,2 --phases small-files,fill --writers 5";
        let args: SparseArgs = parsed(line.split(' ')).expect("arguments");
        let expected = [(Phase::Fill, 1), (Phase::Fill, 2), (Phase::SmallFiles, 5)];
        assert_eq!(args.runs(), expected);
        assert_eq!(args.amounts(2).fill, 5 << 29);
        let line = "--target mem: --writes 0";
        let args: SparseArgs = parsed(line.split(' ')).expect("arguments");
        assert!(args.check().is_err());
    }
}
