//! Runs of the phases, each in a process of its own.

use super::NAME;
use super::args::ReclaimArgs;
use super::flood::PARTS;
use super::task::{Job, Outcome, Task};
use crate::budget::Bytes;
use crate::lent;
use crate::mode::Mode;
use crate::program::Program;
use crate::record::Record;
use crate::report::Report;
use crate::sys;
use crate::targets::{Kept, Target};
use crate::team::{Done, Team};
use crate::workloads;
use anyhow::{Context, Result, bail, ensure};

/// Bytes that a file of a flood may take of the machine's free memory.
const FLOOD_BYTES: u64 = 512;

/// What all runs share.
pub(super) struct Runs<'r> {
    pub(super) args: &'r ReclaimArgs,
    program: Program,
    pub(super) report: Report,
    pub(super) round: usize,
}

impl<'r> Runs<'r> {
    pub(super) fn new(args: &'r ReclaimArgs, program: Program, report: Report) -> Self {
        Self {
            args,
            program,
            report,
            round: 0,
        }
    }

    /// One job in a process of its own.
    ///
    /// # Errors
    /// Those of the worker.
    pub(super) fn done(
        &self,
        kept: &Kept,
        memory: Bytes,
        job: Job,
        threads: usize,
    ) -> Result<(Done, Outcome)> {
        ensure!(!sys::end_asked(), "interrupted");
        let image = kept.image();
        let scratch = image.parent().context("an image is in a folder")?;
        let task = workloads::Task::Reclaim(Task {
            image: image.clone(),
            memory: memory.0,
            job,
            scratch: scratch.to_owned(),
        });
        let mut team = Team::start(&self.program, &task, Mode::Threads(threads))?;
        let done = team.perform(())?;
        team.dismiss()?;
        Ok((done, Outcome::load(scratch)?))
    }

    /// The floods of one target by so many threads: without a limit, and within each budget.
    ///
    /// # Errors
    /// Those of the worker.
    pub(super) fn floods(&mut self, target: &Target, label: &str, threads: usize) -> Result<()> {
        let args = self.args;
        for memory in std::iter::once(Bytes(None)).chain(args.memory.iter().copied()) {
            let phase = format!("flood-{memory}");
            self.report
                .doing(format!("{label}: {phase}, round {}", self.round));
            let flood = args.flood(threads);
            lent::populate(flood.files * threads as u64 * FLOOD_BYTES);
            let kept = image_beside(target)?;
            let (done, outcome) = self.done(&kept, memory, Job::Flood(flood), threads)?;
            let each = flood.files as f64 / PARTS as f64 * threads as f64;
            let rates = outcome.timed.parts.iter().map(|nanos| each / nanos * 1e9);
            let mode = Mode::Threads(threads);
            self.report.add(Record {
                part_rates: Some(rates.collect()),
                p99_nanos: outcome.timed.latencies.quantile(0.99),
                ..seen(
                    done.record(NAME, label, &phase, mode, self.round),
                    memory,
                    outcome,
                )
            })?;
        }
        Ok(())
    }
}

/// A new image of a target, which is removed when this is dropped.
///
/// # Errors
/// If it is no volume, or no folder can be made beside it.
pub(super) fn image_beside(target: &Target) -> Result<Kept> {
    match target {
        Target::Volume(path) => Kept::beside(path),
        other => bail!("{other}: only volumes have a budget of their own"),
    }
}

/// A record with what was watched.
pub(super) fn seen(record: Record, memory: Bytes, outcome: Outcome) -> Record {
    Record {
        budget_bytes: memory.0,
        held: Some(outcome.seen.held()).filter(|&held| held > 0),
        process_cpu_seconds: Some(outcome.seen.cpu_seconds),
        rss_bytes_samples: Some(outcome.seen.resident),
        uses: Some(outcome.uses).filter(|&uses| uses > 0),
        hits: (outcome.uses > 0).then_some(outcome.hits),
        ..record
    }
}
