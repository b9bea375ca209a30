//! `listing`: how long it takes to list a directory of many small files, with and without their
//! attributes. Nothing of it is in memory, and its device or its host is slow.

mod by_calls;
pub(crate) mod cold;
mod device;
mod host;
mod in_process;
mod phase;
mod table;
mod target;
mod volume;

use crate::about::About;
use crate::chance::name;
use crate::mounts::{Holdfast, HoldfastArgs};
use crate::process::{self, Process};
use crate::program::Program;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::sys;
use crate::targets::labels;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use cold::Cold;
use host::SlowHost;
use phase::{PHASES, Phase};
use std::time::{Duration, Instant};
use table::Table;
use target::{Listed, Way};
use volume::{Filled, Slow};

const NAME: &str = "listing";

/// How long a cold directory of many small files takes to list on a slow device, or on a slow host
#[derive(Args, Clone, Debug)]
pub(crate) struct ListingArgs {
    /// What to list. `volume:PATH`: a volume in this process on a new image beside PATH.
    /// `dir:PATH`: the directory of a slow host, a FUSE mount beside PATH, by system calls.
    /// `host:PATH`: such a directory behind the store for directories of the host, in this process.
    /// `mount:PATH`: behind a mount of it, by system calls
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Listed>,
    /// What to do; all if nothing is said
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Files in the directory, each of 1,000 bytes, and as many in the tree
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    files: usize,
    /// How long a read of the device takes, or an answer of the host, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    delay: f64,
    /// The device does one read at a time, as a disk does; else all of a batch at once
    #[arg(long)]
    serial: bool,
    /// Files that are asked for one by one where each costs an answer of the host: all of `dir:`,
    /// and those in no order
    #[arg(long, value_name = "N", default_value_t = 1000)]
    plain: usize,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    holdfast: HoldfastArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// What is the same for all measurements of a run.
struct Run<'r> {
    args: &'r ListingArgs,
    slow: Slow,
    names: Vec<Vec<u8>>,
    program: Program,
    /// The command, if anything is mounted by it.
    holdfast: Option<Holdfast>,
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// What cannot be made; the first call that failed; arguments that make no sense.
pub(crate) fn run(args: &ListingArgs) -> Result<()> {
    ensure!(args.rounds > 0, "at least one round is needed");
    ensure!(
        (1..=10_000_000).contains(&args.files),
        "files: 1 to 10,000,000"
    );
    ensure!(args.plain > 0, "at least one file is to be asked for");
    ensure!((0.0..1e6).contains(&args.delay), "no such delay");
    let slow = Slow {
        delay: Duration::from_secs_f64(args.delay / 1e3),
        serial: args.serial,
    };
    let mounts = args.targets.iter().any(|target| target.way == Way::Mount);
    let run = Run {
        args,
        slow,
        names: (0..args.files as u64).map(name).collect(),
        program: Program::own(NAME)?,
        holdfast: mounts.then(|| Holdfast::find(&args.holdfast)).transpose()?,
    };
    run.all()
}

impl Run<'_> {
    fn all(&self) -> Result<()> {
        let args = self.args;
        let phases = match args.phases.as_slice() {
            [] => PHASES.to_vec(),
            phases => phases.to_vec(),
        };
        let labels = labels(&args.targets);
        let mut report = Report::new(&args.report)?;
        let layout = format!(
            "{} files of 1,000 bytes, {} ms a {}",
            args.files,
            args.delay,
            if args.serial { "read" } else { "batch" }
        );
        let measured = |target: &Listed| phases.iter().filter(|phase| target.can(**phase)).count();
        report.begin(
            About::now(layout.clone(), args.rounds),
            args.rounds * args.targets.iter().map(measured).sum::<usize>(),
        );
        let mut filled = Vec::new();
        for (target, label) in args.targets.iter().zip(&labels) {
            report.doing(format!("{label}: files"));
            let volume = (target.way == Way::Volume)
                .then(|| Filled::make(target.path(), &self.names))
                .transpose();
            filled.push(volume.with_context(|| label.clone())?);
        }
        for round in 1..=args.rounds {
            for ((target, label), filled) in args.targets.iter().zip(&labels).zip(&filled) {
                for &phase in phases.iter().filter(|phase| target.can(**phase)) {
                    report.doing(format!("{label}: {phase}, round {round}"));
                    let record = self.measure(target, filled.as_ref(), phase);
                    report.add(Record {
                        target: label.to_owned(),
                        round,
                        ..record.with_context(|| label.clone())?
                    })?;
                }
            }
        }
        let table = Table {
            records: report.records(),
            labels: &labels,
            targets: &args.targets,
            ext4: table::ext4_seconds(args.files, self.slow),
        };
        let table = table.to_string();
        report.end_with(
            &format!("{NAME}: {layout}, rounds: {}", args.rounds),
            &table,
        );
        report.finish()
    }

    /// Files that are asked for one by one.
    fn most(&self, target: &Listed, phase: Phase) -> usize {
        let costs = match target.way {
            Way::Volume => false,
            Way::Plain => true,
            Way::Host | Way::Mount => phase == Phase::ListingRandom,
        };
        match costs && phase.asks_one_by_one() {
            true => self.args.plain,
            false => usize::MAX,
        }
    }

    /// Opens it with nothing in memory.
    fn open(&self, target: &Listed, filled: Option<&Filled>) -> Result<Box<dyn Cold>> {
        let host = SlowHost {
            program: &self.program,
            files: self.names.len(),
            delay: self.slow.delay,
        };
        let path = target.path();
        Ok(match target.way {
            Way::Volume => Box::new(filled.context("no volume")?.open(self.slow)?),
            Way::Host => Box::new(host.behind_store(path)?),
            Way::Mount => {
                let holdfast = self.holdfast.as_ref().context("nothing mounts it")?;
                Box::new(host.behind_mount(path, holdfast)?)
            }
            Way::Plain => Box::new(host.plain(path)?),
        })
    }

    /// One phase of a directory of which nothing is in memory.
    fn measure(&self, target: &Listed, filled: Option<&Filled>, phase: Phase) -> Result<Record> {
        if sys::end_asked() {
            bail!("interrupted");
        }
        let mut cold = self.open(target, filled)?;
        let most = self.most(target, phase);
        let waits = cold.waits()?;
        let cpu = process::thread_cpu();
        let begun = Instant::now();
        let met = phase.run(&*cold, &self.names, most)?;
        let seconds = begun.elapsed().as_secs_f64();
        let cpu_seconds = process::thread_cpu().saturating_sub(cpu).as_secs_f64();
        let expected = self.names.len().min(most) as u64;
        ensure!(met == expected, "{met} files of {expected}");
        let waits = cold.waits()? - waits;
        let rss_bytes = Process::Own.rss_bytes()?;
        cold.close()?;
        Ok(Record {
            workload: NAME.to_owned(),
            phase: phase.to_string(),
            threads: 1,
            items: met,
            seconds,
            cpu_seconds,
            rss_bytes,
            waits: Some(waits),
            ..Record::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_meets_every_file_and_waits_for_the_device() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("x");
        let target = format!("volume:{}", path.display());
        let args: ListingArgs =
            crate::arguments::parsed(["--target", &target, "--files", "1500"]).expect("args");
        let run = Run {
            args: &args,
            slow: Slow {
                delay: Duration::from_micros(1),
                serial: false,
            },
            names: (0..1500).map(name).collect(),
            program: Program::own(NAME).expect("a program"),
            holdfast: None,
        };
        let filled = Filled::make(&path, &run.names).expect("made");
        for phase in PHASES {
            let measured = run.measure(&args.targets[0], Some(&filled), phase);
            let record = measured.expect("measured");
            assert_eq!(record.items, 1500, "{phase}");
            assert!(record.waits > Some(0), "{phase} found all in memory");
        }
        drop(filled);
        let left = std::fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 0, "the image goes with what was made");
    }
}
