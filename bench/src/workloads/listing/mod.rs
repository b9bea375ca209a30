//! `listing`: how long it takes to list a directory of many small files, with and without their attributes, of which nothing
//! is in memory and that has a slow device.

mod device;
mod phase;
mod target;
mod volume;

use crate::about::About;
use crate::grid::{aligned, median_of, phases};
use crate::process::{self, Process};
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::sys;
use crate::targets::labels;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use phase::{PHASES, Phase};
use std::time::{Duration, Instant};
use target::Listed;
use volume::{Filled, Slow};

const NAME: &str = "listing";

/// What ext4 took for names and stat of each of 100,000 such files on a device that takes [`EXT4_DELAY`] a read, in seconds,
/// as it was measured once, through a loop device over a file with reads that sleep: it is not measured here.
const EXT4_SECONDS: f64 = 5.0;
const EXT4_FILES: f64 = 100_000.0;
const EXT4_DELAY: Duration = Duration::from_millis(5);

/// How long a cold directory of many small files takes to list on a slow device
#[derive(Args, Clone, Debug)]
pub(crate) struct ListingArgs {
    /// What to list: `volume:PATH`, a volume in this process on a new image beside PATH
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Listed>,
    /// What to do; all if nothing is said
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Files in the directory, each of 1,000 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    files: usize,
    /// How long a read of the device takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    delay: f64,
    /// The device does one read at a time, as a disk does; else all of a batch at once
    #[arg(long)]
    serial: bool,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    report: ReportArgs,
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
    ensure!((0.0..1e6).contains(&args.delay), "no such delay");
    let slow = Slow {
        delay: Duration::from_secs_f64(args.delay / 1e3),
        serial: args.serial,
    };
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
    report.begin(
        About::now(layout.clone(), args.rounds),
        args.rounds * labels.len() * phases.len(),
    );
    let mut filled = Vec::new();
    for (Listed::Volume(path), label) in args.targets.iter().zip(&labels) {
        report.doing(format!("{label}: files"));
        filled.push(Filled::make(path, args.files).with_context(|| label.clone())?);
    }
    for round in 1..=args.rounds {
        for (filled, label) in filled.iter().zip(&labels) {
            for &phase in &phases {
                report.doing(format!("{label}: {phase}, round {round}"));
                let record = measure(filled, slow, phase).with_context(|| label.clone())?;
                report.add(Record {
                    target: label.to_owned(),
                    round,
                    ..record
                })?;
            }
        }
    }
    let table = table(report.records(), &labels, ext4_seconds(args.files, slow));
    report.end_with(
        &format!("{NAME}: {layout}, rounds: {}", args.rounds),
        &table,
    );
    report.finish()
}

/// One phase over a volume of which nothing is in memory.
fn measure(filled: &Filled, slow: Slow, phase: Phase) -> Result<Record> {
    if sys::end_asked() {
        bail!("interrupted");
    }
    let cold = filled.open(slow)?;
    let cpu = process::thread_cpu();
    let begun = Instant::now();
    let met = phase.run(&cold, filled.names())?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_seconds = process::thread_cpu().saturating_sub(cpu).as_secs_f64();
    let expected = filled.names().len() as u64;
    ensure!(met == expected, "{met} files of {expected}");
    let waits = cold.waits();
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

/// What ext4 would take for `listing`, where that is known: each file costs it the same.
fn ext4_seconds(files: usize, slow: Slow) -> Option<f64> {
    (slow.delay == EXT4_DELAY).then(|| EXT4_SECONDS * files as f64 / EXT4_FILES)
}

/// Seconds of each phase, how often the device was waited for, and how many times as fast as ext4 that is.
fn table(records: &[Record], labels: &[String], ext4: Option<f64>) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(labels.iter().cloned());
    for phase in phases(records) {
        let mut row = vec![phase.to_owned()];
        for label in labels {
            let seconds = median_of(records, phase, label, |record| Some(record.seconds));
            let Some(seconds) = seconds else {
                row.push("-".to_owned());
                continue;
            };
            let waits = median_of(records, phase, label, |record| {
                record.waits.map(|it| it as f64)
            });
            let waits = waits.map_or_else(String::new, |waits| format!(" {waits:.0}w"));
            let times = ext4.map_or_else(String::new, |ext4| format!(" {:.1}x", ext4 / seconds));
            row.push(format!("{seconds:.3}{waits}{times}"));
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    text.push_str("seconds, medians of the rounds; w: how often a read was waited for");
    if let Some(ext4) = ext4 {
        text.push_str(&format!(
            "; x: times as fast as ext4's {ext4:.2} s for `listing`, a figure of its own day, not of this run"
        ));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_told_beside_ext4_where_that_is_known() {
        let record = Record {
            waits: Some(7),
            ..Record::sample("volume:x", "listing", 100_000, 0.1)
        };
        let labels = ["volume:x".to_owned()];
        let slow = |millis, serial| Slow {
            delay: Duration::from_millis(millis),
            serial,
        };
        let shown = |ext4| {
            let text = table(std::slice::from_ref(&record), &labels, ext4);
            let line = text.lines().nth(1).expect("a line").to_owned();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let known = shown(ext4_seconds(100_000, slow(5, false)));
        assert_eq!(known, ["listing", "0.100", "7w", "50.0x"]);
        let unknown = shown(ext4_seconds(100_000, slow(6, true)));
        assert_eq!(unknown, ["listing", "0.100", "7w"]);
        assert_eq!(ext4_seconds(10_000, slow(5, true)), Some(0.5));
    }

    #[test]
    fn every_phase_meets_every_file_and_waits_for_the_device() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let filled = Filled::make(&folder.path().join("x"), 1500).expect("made");
        let slow = Slow {
            delay: Duration::from_micros(1),
            serial: false,
        };
        for phase in PHASES {
            let record = measure(&filled, slow, phase).expect("measured");
            assert_eq!(record.items, 1500, "{phase}");
            assert!(record.waits > Some(0), "{phase} found all in memory");
        }
        drop(filled);
        let left = std::fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 0, "the image goes with what was made");
    }
}
