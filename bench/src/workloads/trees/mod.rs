//! `trees`: what people do with a tree of files, by the programs that they do it with, where they
//! do it: in a mount.
//!
//! Clients are real programs, not pinned. Each round makes each target anew, in turn, and takes it
//! away again: the run needs the space of one target, and no target lives beside another.

pub(crate) mod archive;
mod census;
mod generate;
mod phase;
mod steps;
mod table;

use crate::about::About;
use crate::commands;
use crate::machine::Spent;
use crate::mounts::{self, Holdfast, HoldfastArgs, Mountable, Need, Place};
use crate::process::Process;
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::sys;
use crate::targets::labels;
use anyhow::{Context, Result, bail, ensure};
use archive::TreeArchive;
use census::Census;
use clap::Args;
use phase::{PHASES, Phase, plan};
use std::path::{Path, PathBuf};
use steps::{Did, Steps};
use table::Column;
use tempfile::TempDir;

/// As the command line calls it.
const NAME: &str = "trees";

/// Trees at once in a target: one, its copy, and two.
const TREES: u64 = 4;

/// Real programs on a tree of files: untar, find, ls, du, grep, git, cp, tar, rm; warm and cold
///
/// Each phase that writes ends with a sync. Cold phases begin with a fresh mount and empty caches
/// of the host, which needs root, as mounting does; `mem:` has none, for it would be gone.
#[derive(Args, Clone, Debug)]
pub(crate) struct TreesArgs {
    /// What to measure. `hf:IMAGE`: our mount of a volume in a new image file. `mem:`: our mount of
    /// a file system in memory. `ext4:IMAGE`, `xfs:IMAGE`, `btrfs:IMAGE`: on a loop device over a
    /// new image file. `dir:PATH`: an existing directory. The images are removed at the end
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Mountable>,
    /// The tree: a tar archive, which may be compressed; without this a generated one like
    /// `node_modules`
    #[arg(long, value_name = "FILE")]
    tree: Option<PathBuf>,
    /// Files of the generated tree, in an eighth as many directories
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50_000,
        conflicts_with = "tree"
    )]
    files: u64,
    /// Phases; all if nothing is said
    #[arg(
        long,
        value_name = "PHASE,…",
        value_delimiter = ',',
        hide_possible_values = false
    )]
    phases: Vec<Phase>,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    /// Where the plain archive lies, and what the programs print (default: /dev/shm if it is there)
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    #[command(flatten)]
    holdfast: HoldfastArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// What cannot be made or mounted, or is missing; the first program that failed, or did not do its
/// work.
pub(crate) fn run(args: &TreesArgs) -> Result<()> {
    ensure!(args.rounds > 0, "at least one round is needed");
    let mut wanted = args.phases.clone();
    if wanted.is_empty() {
        wanted = PHASES.to_vec();
    }
    let plan = plan(&wanted);
    commands::require(plan.iter().map(|phase| phase.program()))?;
    let ready = mounts::ready(&args.targets, &args.holdfast)?;
    let holdfast = ready.holdfast.as_ref();
    let mut report = Report::new(&args.report)?;
    let scratch = scratch(args.scratch.as_deref())?;
    report.doing("making the tree".to_owned());
    let archive = match &args.tree {
        Some(file) => TreeArchive::given(file, scratch.path())?,
        None => TreeArchive::generated(args.files, scratch.path())?,
    };
    let trial = Trial {
        archive: &archive,
        holdfast,
        scratch: scratch.path(),
        wanted: &wanted,
        plan: &plan,
    };
    let labels = labels(&args.targets);
    let layout = layout(&archive, holdfast);
    let offered = args
        .targets
        .iter()
        .map(|target| trial.offered(target).count());
    report.begin(
        About::now(layout.clone(), args.rounds),
        args.rounds * offered.sum::<usize>(),
    );
    for round in 1..=args.rounds {
        for (target, label) in args.targets.iter().zip(&labels) {
            let measured = trial.measure(target, label, round, &mut report);
            measured.with_context(|| label.clone())?;
        }
    }
    let columns: Vec<Column<'_>> = (args.targets.iter().zip(&labels))
        .map(|(target, label)| Column {
            label,
            ours: target.is_ours(),
        })
        .collect();
    let table = table::render(report.records(), &columns);
    report.end_with(
        &format!("{NAME}: {layout}, rounds: {}", args.rounds),
        &table,
    );
    report.finish()
}

/// What is in memory wherever that is possible: it is not what is measured.
fn scratch(chosen: Option<&Path>) -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let parent = match chosen {
        Some(folder) => folder.to_owned(),
        None if memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    };
    let made = tempfile::Builder::new()
        .prefix("holdfast-bench-")
        .tempdir_in(&parent);
    made.with_context(|| format!("cannot use {}", parent.display()))
}

fn layout(archive: &TreeArchive, holdfast: Option<&Holdfast>) -> String {
    let Census {
        files,
        directories,
        symlinks,
        bytes,
        ..
    } = archive.census;
    let options = holdfast.and_then(Holdfast::options);
    let options = options.map_or_else(String::new, |options| format!(", mounted with {options}"));
    format!(
        "{} tree of {files} files in {directories} directories, {symlinks} links, {} MB{options}",
        archive.name,
        bytes / 1_000_000
    )
}

/// What is the same for all targets and rounds.
struct Trial<'t> {
    archive: &'t TreeArchive,
    holdfast: Option<&'t Holdfast>,
    scratch: &'t Path,
    /// Phases to be told of.
    wanted: &'t [Phase],
    /// And those that they need.
    plan: &'t [Phase],
}

impl Trial<'_> {
    /// Phases that a target has records of.
    fn offered(&self, target: &Mountable) -> impl Iterator<Item = Phase> {
        let cold = target.can_be_cold();
        let wanted = self.wanted.to_vec();
        let plan = self.plan.to_vec();
        let chosen = move |phase: &Phase| wanted.contains(phase) && (cold || !phase.is_cold());
        plan.into_iter().filter(chosen)
    }

    fn need(&self) -> Need {
        let Census { block_bytes, .. } = self.archive.census;
        let entries = self.archive.census.entries();
        // The repository has each file again, compressed, with a directory for 256 of them; so has
        // its copy.
        Need {
            bytes: (TREES + 2) * (block_bytes + entries * 1024),
            inodes: (TREES + 2) * entries + 2000,
        }
    }

    fn measure(
        &self,
        target: &Mountable,
        label: &str,
        round: usize,
        report: &mut Report,
    ) -> Result<()> {
        let doing = |what: &dyn std::fmt::Display| format!("{label}: {what}, round {round}");
        report.doing(doing(&"making it"));
        let place = Place::make(target, self.need(), self.holdfast, self.scratch)?;
        let mut steps = Steps::new(place, self.archive, self.scratch);
        let offered: Vec<Phase> = self.offered(target).collect();
        let last = offered.last().copied();
        for &phase in self.plan {
            if Some(phase) > last || (phase.is_cold() && !target.can_be_cold()) {
                continue;
            }
            report.doing(doing(&phase));
            if sys::end_asked() {
                bail!("interrupted");
            }
            let record = perform(&mut steps, phase).with_context(|| phase.to_string())?;
            if offered.contains(&phase) {
                report.add(Record {
                    target: label.to_owned(),
                    round,
                    ..record
                })?;
            }
        }
        report.doing(doing(&"removing it"));
        steps.close()
    }
}

fn perform(steps: &mut Steps<'_>, phase: Phase) -> Result<Record> {
    steps.prepare(phase)?;
    let daemon = steps.place().daemon()?;
    let (idle, requests) = (Spent::now()?, steps.place().requests()?);
    let cpu = cpu_seconds(daemon)?;
    let Did { time, items, bytes } = steps.perform(phase)?;
    let cpu_seconds = cpu_seconds(daemon)? - cpu;
    let idle = Spent::now()?.idle_since(idle);
    let after = steps.place().requests()?;
    Ok(Record {
        workload: NAME.to_owned(),
        phase: phase.to_string(),
        threads: 1,
        items,
        bytes,
        seconds: time.as_secs_f64(),
        cpu_seconds,
        rss_bytes: daemon.unwrap_or(Process::Own).rss_bytes()?,
        idle,
        requests: after
            .zip(requests)
            .map(|(after, before)| after.saturating_sub(before)),
        transport: steps.place().transport()?,
        ..Record::default()
    })
}

/// Of the programs that have ended, and of our daemon.
fn cpu_seconds(daemon: Option<Process>) -> Result<f64> {
    let daemon = daemon.map_or(Ok(0.0), Process::cpu_seconds)?;
    Ok(Process::children_cpu_seconds()? + daemon)
}
