//! Runs of the phases, each in a process of its own.

use super::NAME;
use super::args::ReclaimArgs;
use super::flood::PARTS;
use super::subject::Subject;
use super::task::{Job, Outcome, Place, Task};
use crate::budget::{Bytes, ControlGroup};
use crate::lent;
use crate::mounts::{self, Mountable, Need};
use crate::program::Program;
use crate::record::Record;
use crate::report::Report;
use crate::rest;
use crate::shape::Shape;
use crate::sys;
use crate::targets::{Folder, Kept, Parent, Target};
use crate::team::{Done, Team};
use crate::workloads;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Bytes that a file of a flood may take of the machine's free memory.
const FLOOD_BYTES: u64 = 512;

/// What all runs share.
pub(super) struct Runs<'r> {
    pub(super) args: &'r ReclaimArgs,
    program: Program,
    pub(super) report: Report,
    pub(super) round: usize,
    /// Why something was left out, each reason once.
    pub(super) skipped: BTreeSet<String>,
}

/// How a run went.
enum Ran {
    Well(Done, Box<Outcome>),
    /// The kernel killed it, because the memory of its control group was used up.
    Killed(u64),
}

impl<'r> Runs<'r> {
    pub(super) fn new(args: &'r ReclaimArgs, program: Program, report: Report) -> Self {
        Self {
            args,
            program,
            report,
            round: 0,
            skipped: BTreeSet::new(),
        }
    }

    /// One job in a process of its own, in a control group if there is one.
    fn perform(
        &self,
        (place, memory): (Place, Bytes),
        job: Job,
        threads: usize,
        (scratch, group): (&Path, Option<&ControlGroup>),
    ) -> Result<Ran> {
        ensure!(!sys::end_asked(), "interrupted");
        let task = workloads::Task::Reclaim(Task {
            place,
            memory: memory.0,
            group: group.map(|group| group.path().to_owned()),
            job,
            scratch: scratch.to_owned(),
        });
        let run = || -> Result<(Done, Outcome)> {
            let mut team = Team::start(&self.program, &task, Shape::Threads(threads))?;
            let done = team.perform(())?;
            team.dismiss()?;
            Ok((done, Outcome::load(scratch)?))
        };
        match (run(), group) {
            (Ok((done, outcome)), _) => Ok(Ran::Well(done, Box::new(outcome))),
            (Err(error), Some(group)) => match group.kills()? {
                0 => Err(error),
                kills => Ok(Ran::Killed(kills)),
            },
            (Err(error), None) => Err(error),
        }
    }

    /// A job that nothing can kill.
    ///
    /// # Errors
    /// Those of the worker.
    pub(super) fn done(
        &self,
        place: (Place, Bytes),
        job: Job,
        threads: usize,
        scratch: &Path,
    ) -> Result<(Done, Outcome)> {
        match self.perform(place, job, threads, (scratch, None))? {
            Ran::Well(done, outcome) => Ok((done, *outcome)),
            Ran::Killed(_) => bail!("it was killed"),
        }
    }

    /// The floods of one target by so many threads: without a limit, and within each budget. A file system of the kernel
    /// knows no budget but its control group.
    pub(super) fn floods(&mut self, target: &Subject, label: &str, threads: usize) -> Result<()> {
        let args = self.args;
        let unlimited = [Bytes(None)].into_iter();
        match target {
            Subject::Volume(path) => {
                for memory in unlimited.chain(args.memory.iter().copied()) {
                    let kept = Kept::beside(path)?;
                    let place = Place::Image(kept.image());
                    let scratch = folder_of(&kept)?;
                    // Without a limit of its own it has none at all: it is what others are held against.
                    let group = memory.0.and(args.group);
                    self.flood((place, memory), group, label, threads, &scratch)?;
                }
            }
            Subject::Host(host) => {
                for group in std::iter::once(None).chain(args.group.map(Some)) {
                    let scratch = Folder::fresh_in(&target.beside())?;
                    self.host_flood(host, group, label, threads, scratch.path())?;
                    scratch.close()?;
                }
            }
        }
        Ok(())
    }

    fn host_flood(
        &mut self,
        host: &Mountable,
        group: Option<Bytes>,
        label: &str,
        threads: usize,
        scratch: &Path,
    ) -> Result<()> {
        mounts::ready(std::slice::from_ref(host), &mounts::HoldfastArgs::default())?;
        let _parent = match host {
            Mountable::Directory(path) => Some(Parent::ready(path)?),
            _ => None,
        };
        let need = Need {
            bytes: 0,
            inodes: self.args.files + self.args.files / self.args.per_dir + 1000,
        };
        let made = mounts::Place::make(host, need, None, scratch)?;
        let place = match host {
            Mountable::Directory(_) => Place::Directory(made.root().to_owned()),
            _ => Place::Mounted(made.root().to_owned()),
        };
        self.flood((place, Bytes(None)), group, label, threads, scratch)?;
        rest::after(&Target::Directory(made.root().to_owned()));
        made.close()
    }

    fn flood(
        &mut self,
        (place, memory): (Place, Bytes),
        group: Option<Bytes>,
        label: &str,
        threads: usize,
        scratch: &Path,
    ) -> Result<()> {
        let limit = match group {
            None => memory.to_string(),
            Some(group) => format!("{memory}-group-{group}"),
        };
        let phase = format!("flood-{limit}");
        self.report
            .doing(format!("{label}: {phase}, round {}", self.round));
        let group = match group.and_then(|group| group.0).map(ControlGroup::new) {
            None => None,
            Some(Ok(group)) => Some(group),
            Some(Err(unfit)) => {
                self.skipped.insert(format!("{phase}: {unfit}"));
                return Ok(());
            }
        };
        let flood = self.args.flood(threads);
        lent::at_hand(flood.files * threads as u64 * FLOOD_BYTES);
        let job = Job::Flood(flood);
        let ran = self.perform((place, memory), job, threads, (scratch, group.as_ref()))?;
        let shape = Shape::Threads(threads);
        let record = match ran {
            Ran::Killed(kills) => Record {
                workload: NAME.to_owned(),
                target: label.to_owned(),
                phase,
                threads,
                round: self.round,
                kills: Some(kills),
                ..Record::default()
            },
            Ran::Well(done, outcome) => {
                let each = flood.files as f64 / PARTS as f64 * threads as f64;
                let rates = outcome.timed.parts.iter().map(|nanos| each / nanos * 1e9);
                Record {
                    part_rates: Some(rates.collect()),
                    p99_nanos: outcome.timed.latencies.quantile(0.99),
                    kills: group.as_ref().map(ControlGroup::kills).transpose()?,
                    ..seen(
                        done.record(NAME, label, &phase, shape, self.round),
                        memory,
                        *outcome,
                    )
                }
            }
        };
        self.report.add(record)
    }
}

/// The folder that an image is in.
///
/// # Errors
/// Never: it has one.
pub(super) fn folder_of(kept: &Kept) -> Result<PathBuf> {
    let image = kept.image();
    let folder = image.parent().context("an image is in a folder")?;
    Ok(folder.to_owned())
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
        class_bytes: Some(outcome.classes.into_iter().collect()),
        ..record
    }
}
