//! `cluster`: mounts of one tree by several clients over a database that is some way off.
//!
//! A target is mounted anew for each delay and round, by as many clients as a work has. No target
//! is mounted beside another.

mod proxy;
mod target;
mod work;

use crate::about::About;
use crate::commands;
use crate::grid::{aligned, median_of, phases};
use crate::mounts::{Holdfast, HoldfastArgs};
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::targets::labels;
use crate::workloads::trees::archive::TreeArchive;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;
use target::{Clients, Programs, Target};
use work::{Material, WORKS, Work};

const NAME: &str = "cluster";

/// A tree of several machines beside JuiceFS: creations by clients and threads, untar, rm, ls, git
///
/// Each work that writes ends with a sync. Cold ones begin with a fresh mount and empty caches of
/// the host, which needs root, as mounting does.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterArgs {
    /// What to measure: `pg:URL` and `juicefs:URL` are mounted by the run; `dir:PATH,…` are mount
    /// points, one a client or one for all, which no delay is put before. Ratios are to the last
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Target>,
    /// Round trips to the database that are measured, in milliseconds; 0: as it is
    #[arg(long, value_name = "MS,…", value_delimiter = ',', default_value = "0")]
    rtt: Vec<u64>,
    /// Works; all if nothing is said
    #[arg(long, value_name = "WORK,…", value_delimiter = ',')]
    works: Vec<String>,
    /// Files that each thread makes
    #[arg(long, value_name = "N", default_value_t = 300)]
    files: usize,
    /// Files of the tree that is unpacked, removed and cloned
    #[arg(long, value_name = "N", default_value_t = 2765)]
    tree: u64,
    /// Names of the directory that is listed. It stays, for the next run
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    names: usize,
    /// Size of the big file
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    big: usize,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// The program that mounts `juicefs:URL`
    #[arg(long, value_name = "PROGRAM", default_value = "juicefs")]
    juicefs: PathBuf,
    /// Options of its mounts; `--enable-xattr` gives them what ours have
    #[arg(
        long,
        value_name = "OPTION,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    juicefs_options: Vec<String>,
    #[command(flatten)]
    holdfast: HoldfastArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// What cannot be mounted; the first call or program that failed.
pub(crate) fn run(args: &ClusterArgs) -> Result<()> {
    ensure!(args.rounds > 0, "at least one round is needed");
    let works = chosen(&args.works)?;
    let scratch = tempfile::Builder::new()
        .prefix("holdfast-bench-")
        .tempdir()?;
    let ours = args
        .targets
        .iter()
        .any(|target| matches!(target, Target::Ours(_)));
    let programs = Programs {
        holdfast: ours.then(|| Holdfast::find(&args.holdfast)).transpose()?,
        juicefs: args.juicefs.clone(),
        juicefs_options: args.juicefs_options.clone(),
    };
    let mut report = Report::new(&args.report)?;
    let material = Material {
        files: args.files,
        names: args.names,
        pieces: args.big,
        archive: TreeArchive::generated(args.tree, scratch.path())?,
        repository: scratch.path().join("repository"),
        scratch: scratch.path().to_owned(),
    };
    if works.iter().any(|(_, work)| *work == Work::Clone) {
        material.make_repository()?;
    }
    let options = programs.holdfast.as_ref().and_then(Holdfast::options);
    let layout = format!(
        "{} files a thread, a tree of {}, {} names, {} MiB{}",
        args.files,
        args.tree,
        args.names,
        args.big,
        options.map_or_else(String::new, |options| format!(", mounted with {options}"))
    );
    let labels = labels(&args.targets);
    let expected = args.rounds * args.rtt.len() * labels.len() * works.len();
    report.begin(About::now(layout.clone(), args.rounds), expected);
    let place = format!("holdfast-bench-{}", process::id());
    for round in 1..=args.rounds {
        for &rtt in &args.rtt {
            for (target, label) in args.targets.iter().zip(&labels) {
                let delay = Duration::from_millis(rtt);
                let mut clients = Clients::new(target, delay, &programs, scratch.path())?;
                let below = format!("{place}/{round}-{rtt}");
                for &(name, work) in &works {
                    report.doing(format!("{label}: {name} at {rtt} ms, round {round}"));
                    let measured = measure(work, &material, &mut clients, &below);
                    let record = measured.with_context(|| format!("{label}: {name}"))?;
                    report.add(Record {
                        phase: format!("{name} at {rtt} ms"),
                        target: label.clone(),
                        round,
                        ..record
                    })?;
                }
            }
        }
    }
    remove(args, &place, &programs, scratch.path())?;
    let table = table(report.records(), &labels);
    report.end_with(
        &format!("{NAME}: {layout}, rounds: {}", args.rounds),
        &table,
    );
    report.finish()
}

/// Removes from all targets what the run made, without a delay.
fn remove(args: &ClusterArgs, place: &str, programs: &Programs, scratch: &Path) -> Result<()> {
    for target in &args.targets {
        let mut clients = Clients::new(target, Duration::ZERO, programs, scratch)?;
        clients.set_count(1)?;
        let mut rm = Command::new("rm");
        commands::run(rm.arg("-rf").arg(clients.root(0).join(place)), scratch)?;
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<(&'static str, Work)>> {
    if names.is_empty() {
        return Ok(WORKS.to_vec());
    }
    if let Some(name) = names
        .iter()
        .find(|name| WORKS.iter().all(|(known, _)| known != name))
    {
        let known: Vec<_> = WORKS.iter().map(|(name, _)| *name).collect();
        bail!("not a work: `{name}` (known are {})", known.join(", "));
    }
    let works = WORKS
        .iter()
        .filter(|(name, _)| names.iter().any(|one| one == name));
    Ok(works.copied().collect())
}

fn measure(
    work: Work,
    material: &Material,
    clients: &mut Clients<'_>,
    place: &str,
) -> Result<Record> {
    material.prepare(work, clients, place)?;
    let daemon = clients.daemon()?;
    let (before, cpu) = (clients.trips()?, daemon.cpu_seconds()?);
    let did = material.perform(work, clients, place)?;
    let cpu_seconds = daemon.cpu_seconds()? - cpu;
    let trips = clients
        .trips()?
        .zip(before)
        .map(|(after, before)| since(after, &before));
    Ok(Record {
        workload: NAME.to_owned(),
        threads: match work {
            Work::Create {
                clients, threads, ..
            } => clients * threads,
            _ => 1,
        },
        items: did.items,
        bytes: did.bytes,
        seconds: did.seconds,
        cpu_seconds,
        rss_bytes: daemon.rss_bytes()?,
        trips,
        ..Record::default()
    })
}

fn since(after: BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = after.into_iter().map(|(function, count)| {
        let before = before.get(&function).copied().unwrap_or(0);
        (function, count - before)
    });
    grown.filter(|(_, count)| *count > 0).collect()
}

/// A row for each work: seconds of each target, how many times as fast as the last it is, and the
/// round trips of ours.
fn table(records: &[Record], labels: &[String]) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(labels.iter().cloned());
    for phase in phases(records) {
        let value =
            |label: &String, of: fn(&Record) -> Option<f64>| median_of(records, phase, label, of);
        let seconds = |label| value(label, |record| Some(record.seconds));
        let last = labels.last().and_then(seconds);
        let mut row = vec![phase.to_owned()];
        for label in labels {
            let mut cell = String::new();
            if let Some((own, last)) = seconds(label).zip(last) {
                let _ = write!(cell, "{own:.3} s {:.2}x", last / own);
            }
            if let Some(rate) = value(label, |record| {
                Some(record.rate()).filter(|_| record.items > 1)
            }) {
                let _ = write!(cell, " {rate:.0}/s");
            }
            if let Some(trips) = value(label, each_trips) {
                let _ = write!(cell, " {trips:.2}t");
            }
            row.push(cell);
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    text.push_str(
        "medians of the rounds; x: times as fast as the last target; /s: items a second; ",
    );
    text.push_str("t: round trips of our mounts for each item\n");
    text
}

fn each_trips(record: &Record) -> Option<f64> {
    let trips = record.trips.as_ref()?;
    Some(trips.values().sum::<u64>() as f64 / record.items as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_target_is_what_others_are_held_against() {
        let record = |target, seconds, trips: Option<u64>| Record {
            trips: trips.map(|count| [("perform".to_owned(), count)].into()),
            ..Record::sample(target, "untar at 1 ms", 10, seconds)
        };
        let records = [record("pg", 2.0, Some(22)), record("juicefs", 12.0, None)];
        let text = table(&records, &["pg".to_owned(), "juicefs".to_owned()]);
        let row = text.lines().nth(1).expect("a row");
        assert!(
            row.contains("2.000 s 6.00x 5/s 2.20t  12.000 s 1.00x 1/s"),
            "{text}"
        );
    }

    #[test]
    fn trips_are_those_of_the_work_and_unknown_works_are_refused() {
        let counts = |list: &[(&str, u64)]| -> BTreeMap<String, u64> {
            list.iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let after = counts(&[("perform", 7), ("look_up", 3), ("load", 1)]);
        let before = counts(&[("perform", 2), ("look_up", 3)]);
        assert_eq!(
            since(after, &before),
            counts(&[("perform", 5), ("load", 1)])
        );
        let picked = chosen(&["rm".to_owned(), "untar".to_owned()]).expect("known");
        assert_eq!(picked, [("untar", Work::Untar), ("rm", Work::Remove)]);
        let error = chosen(&["tar".to_owned()])
            .expect_err("unknown")
            .to_string();
        assert!(
            error.contains("`tar`") && error.contains("big-read"),
            "{error}"
        );
    }
}
