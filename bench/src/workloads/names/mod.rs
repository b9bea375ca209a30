//! `names`: one directory that is larger than its budget of memory: how fast names are made in it, what a lookup costs of
//! which nothing is in memory, how fast it is listed, and emptied.
//!
//! Every phase is a process of its own, which keeps to the budget as the daemon of a mount does, and begins with nothing in memory.

mod job;
mod table;
mod task;

pub(crate) use task::Task;

use crate::about::About;
use crate::budget::{Bytes, volume_target};
use crate::program::Program;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::shape::Shape;
use crate::sys;
use crate::targets::{Kept, drop_host_caches, labels};
use crate::team::Team;
use crate::workloads;
use anyhow::{Context, Result, ensure};
use clap::Args;
use job::{Job, PHASES, Phase};
use std::path::PathBuf;
use task::Outcome;

/// As the command line calls it.
pub(crate) const NAME: &str = "names";

/// One directory that is larger than its budget of memory
#[derive(Args, Clone, Debug)]
pub(crate) struct NamesArgs {
    /// What to run on: `volume:PATH`, a volume in a process of its own on a new image beside that path
    #[arg(long = "target", value_name = "TARGET", required = true, value_parser = volume_target)]
    targets: Vec<PathBuf>,
    /// Names in the directory, each of 24 bytes and of an empty file of its own
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    names: u64,
    /// Lookups of names in no order
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    lookups: u64,
    /// The budget of the process, as `64m`, `1g`
    #[arg(long, value_name = "SIZE", default_value = "64m")]
    memory: Bytes,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Fail if a goal is missed
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// The first call that failed; a target that cannot be used; arguments that make no sense; a goal that was missed, if that is to be an
/// error.
pub(crate) fn run(args: &NamesArgs) -> Result<()> {
    ensure!(args.rounds > 0, "at least one round is needed");
    ensure!(
        (10..100_000_000).contains(&args.names) && (1..=args.names).contains(&args.lookups),
        "10 to 100,000,000 names, and no more lookups than names"
    );
    let shown: Vec<String> = args
        .targets
        .iter()
        .map(|path| format!("volume:{}", path.display()))
        .collect();
    let labels = labels(&shown);
    let layout = format!(
        "{} names in one directory, memory={}",
        args.names, args.memory
    );
    let mut report = Report::new(&args.report)?;
    report.begin(
        About::now(layout.clone(), args.rounds),
        args.rounds * labels.len() * PHASES.len(),
    );
    let program = Program::own(NAME)?;
    for round in 1..=args.rounds {
        for (path, label) in args.targets.iter().zip(&labels) {
            let kept = Kept::beside(path)?;
            for phase in PHASES {
                report.doing(format!("{label}: {phase}, round {round}"));
                let record = measure(args, &program, &kept, phase);
                report.add(Record {
                    target: label.clone(),
                    round,
                    ..record.with_context(|| format!("{label}: {phase}"))?
                })?;
            }
        }
    }
    let told = table::render(report.records(), &labels);
    report.end_with(
        &format!("{NAME}: {layout}, rounds: {}", args.rounds),
        &told.text,
    );
    report.finish()?;
    ensure!(
        !args.check || told.missed == 0,
        "{} goals were missed",
        told.missed
    );
    Ok(())
}

/// One phase in a process of its own.
fn measure(args: &NamesArgs, program: &Program, kept: &Kept, phase: Phase) -> Result<Record> {
    ensure!(!sys::end_asked(), "interrupted");
    // Reads of the device are counted, wherever they end; what is also timed should not come from the host's cache if this process may
    // drop that.
    let _ = drop_host_caches();
    let image = kept.image();
    let scratch = image.parent().context("an image is in a folder")?;
    let memory = if phase.is_whole() {
        Bytes(None)
    } else {
        args.memory
    };
    let task = workloads::Task::Names(Task {
        image: image.clone(),
        memory: memory.0,
        job: Job {
            phase,
            names: args.names,
            lookups: args.lookups,
        },
        scratch: scratch.to_owned(),
    });
    let mut team = Team::start(program, &task, Shape::Threads(1))?;
    let done = team.perform(())?;
    team.dismiss()?;
    let outcome = Outcome::load(scratch)?;
    Ok(Record {
        budget_bytes: memory.0,
        process_cpu_seconds: Some(outcome.seen.cpu_seconds),
        rss_bytes_samples: Some(outcome.seen.resident),
        part_rates: Some(outcome.met.part_rates).filter(|rates| !rates.is_empty()),
        device_reads: Some(outcome.met.reads),
        device_reads_max: outcome.met.reads_max,
        device_reads_over: outcome.met.reads_over,
        waits: Some(outcome.met.waits),
        ..done.record(NAME, "", &phase, Shape::Threads(1), 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    #[test]
    fn only_volumes_are_targets() {
        let line = "--target volume:/x/y --names 1000";
        let args: NamesArgs = parsed(line.split(' ')).expect("arguments");
        assert_eq!(args.targets, [PathBuf::from("/x/y")]);
        for line in ["--target mem:", "--target volume:", ""] {
            let args = parsed::<NamesArgs>(line.split(' ').filter(|word| !word.is_empty()));
            assert!(args.is_err(), "{line}");
        }
    }
}
