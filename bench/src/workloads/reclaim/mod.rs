//! `reclaim`: whether memory keeps to its budget, at what speed, and what stays in it.
//!
//! Every run is a process of its own, which keeps to its budget as the daemon of a mount does. What
//! it finds in memory is counted by what it has to ask its store for.

mod args;
mod beside;
mod flood;
mod forest;
mod latencies;
mod runs;
mod table;
mod task;
mod tree;

pub(crate) use args::ReclaimArgs;
pub(crate) use task::Task;

use crate::about::About;
use crate::program::Program;
use crate::report::Report;
use crate::targets::labels;
use anyhow::{Context, Result, ensure};
use args::Phase;
use forest::Forest;
use runs::Runs;

/// As the command line calls it.
pub(crate) const NAME: &str = "reclaim";

/// Runs the workload and prints what came of it.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense; a goal
/// that was missed, if that is to be an error.
pub(crate) fn run(args: &ReclaimArgs) -> Result<()> {
    args.check()?;
    let labels = labels(&args.targets);
    let mut report = Report::new(&args.report)?;
    report.begin(About::now(args.layout(), args.rounds), args.expected());
    let mut runs = Runs::new(args, Program::own(NAME)?, report);
    let mut forests = Vec::new();
    for (target, label) in args.targets.iter().zip(&labels) {
        for (memory, of) in args.trees() {
            let forest = Forest::make(&mut runs, label, target, memory, of);
            forests.push(forest.with_context(|| label.clone())?);
        }
    }
    for round in 1..=args.rounds {
        runs.round = round;
        if args.has(Phase::Flood) {
            for &threads in &args.threads {
                for (target, label) in args.targets.iter().zip(&labels) {
                    runs.floods(target, label, threads)
                        .with_context(|| label.clone())?;
                }
            }
        }
        for forest in &forests {
            forest
                .measure(&mut runs)
                .with_context(|| forest.label().to_owned())?;
        }
    }
    drop(forests);
    let mut report = runs.report;
    let tables = table::render(report.records());
    report.end_with(
        &format!("{NAME}: {}, rounds: {}", args.layout(), args.rounds),
        &tables.text,
    );
    report.finish()?;
    ensure!(
        !args.check || tables.missed == 0,
        "{} goals were missed",
        tables.missed
    );
    Ok(())
}
