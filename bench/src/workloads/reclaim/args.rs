//! The command line.

use super::flood::{Flood, PARTS};
use super::tree::{Of, Order};
use crate::budget::Bytes;
use crate::report::ReportArgs;
use crate::targets::Target;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Phase {
    /// Empty files without end, within the budget and without one
    Flood,
    /// A working set of a tenth of what fits, used beside a walk over ten times as much as fits
    WorkingSet,
}

/// Whether memory keeps to its budget, at what speed, and what stays in it
#[derive(Args, Clone, Debug)]
pub(crate) struct ReclaimArgs {
    /// What to run on: `volume:PATH`, a volume in a process of its own on a new image beside that
    /// path
    #[arg(long = "target", value_name = "TARGET")]
    pub(super) targets: Vec<Target>,
    /// Phases to run; all if nothing is said
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    pub(super) phases: Vec<Phase>,
    /// Budgets of the process, as `64m`, `4g`
    #[arg(
        long,
        value_name = "SIZE,…",
        value_delimiter = ',',
        default_value = "64m"
    )]
    pub(super) memory: Vec<Bytes>,
    /// Thread counts of floods
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2")]
    pub(super) threads: Vec<usize>,
    /// Files of a flood, of all threads together: 20 times as many as fit show what a full memory
    /// costs. 64 MiB hold 180,000
    #[arg(long, value_name = "F", default_value_t = 2_000_000)]
    pub(super) files: u64,
    /// Files of a flood in one directory
    #[arg(long, value_name = "F", default_value_t = 10_000)]
    pub(super) per_dir: u64,
    /// What is to stay in memory
    #[arg(
        long,
        value_name = "KIND,…",
        value_delimiter = ',',
        default_value = "inodes,content"
    )]
    pub(super) of: Vec<Of>,
    /// Orders of the walk beside a working set
    #[arg(
        long,
        value_name = "ORDER,…",
        value_delimiter = ',',
        default_value = "number,mixed"
    )]
    pub(super) orders: Vec<Order>,
    /// How often in a row the walk uses each object
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,3")]
    pub(super) uses: Vec<u32>,
    /// Objects that are walked for one use of the working set
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,50"
    )]
    pub(super) paces: Vec<u32>,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    pub(super) rounds: usize,
    /// Fail if a goal is missed
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

impl ReclaimArgs {
    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.rounds > 0, "at least one round is needed");
        let is_volume = |target: &Target| matches!(target, Target::Volume(_));
        ensure!(
            !self.targets.is_empty() && self.targets.iter().all(is_volume),
            "a --target is needed, as `volume:/var/tmp/x`, and no other than volumes"
        );
        ensure!(
            !self.memory.is_empty() && self.memory.iter().all(|memory| memory.0.is_some()),
            "--memory takes sizes; a flood without a limit is measured in any case"
        );
        let least = self.threads.iter().min().copied().unwrap_or(0);
        let most = self.threads.iter().max().copied().unwrap_or(0) as u64;
        ensure!(least > 0, "at least one thread is needed");
        ensure!(
            self.files >= PARTS * most && self.files < 1 << 32 && self.per_dir > 0,
            "{PARTS} files for each thread are needed, and fewer than 2^32"
        );
        ensure!(
            self.uses
                .iter()
                .chain(&self.paces)
                .all(|number| (1..=10_000).contains(number)),
            "uses and paces: 1 to 10,000"
        );
        Ok(())
    }

    pub(super) fn has(&self, phase: Phase) -> bool {
        self.phases.is_empty() || self.phases.contains(&phase)
    }

    /// What each of so many threads makes.
    pub(super) fn flood(&self, threads: usize) -> Flood {
        let files = self.files / threads as u64;
        Flood {
            files: files - files % PARTS,
            per_dir: self.per_dir,
        }
    }

    /// The trees that are needed on each target: for which budget, and of what.
    pub(super) fn trees(&self) -> Vec<(Bytes, Of)> {
        if !self.has(Phase::WorkingSet) {
            return Vec::new();
        }
        let each = |&memory| self.of.iter().map(move |&of| (memory, of));
        self.memory.iter().flat_map(each).collect()
    }

    /// Records of all rounds, about.
    pub(super) fn expected(&self) -> usize {
        let floods = match self.has(Phase::Flood) {
            true => self.threads.len() * (self.memory.len() + 1),
            false => 0,
        };
        let walks = self.orders.len() * self.uses.len() * (self.paces.len() + 1);
        let trees = self.trees().len();
        // What fits is measured once.
        self.targets.len() * (self.rounds * (floods + trees * walks) + trees)
    }

    pub(super) fn layout(&self) -> String {
        let mut parts = Vec::new();
        let memory: Vec<String> = self.memory.iter().map(ToString::to_string).collect();
        parts.push(format!("memory={}", memory.join(",")));
        if self.has(Phase::Flood) {
            parts.push(format!(
                "floods of {} files, {} in a directory",
                self.files, self.per_dir
            ));
        }
        if self.has(Phase::WorkingSet) {
            parts.push(
                "working sets of a tenth of what fits beside walks over ten times as much as fits"
                    .to_owned(),
            );
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    fn args(line: &str) -> ReclaimArgs {
        parsed(line.split_whitespace()).expect("arguments")
    }

    #[test]
    fn trees_are_made_only_for_the_phase_that_uses_them() {
        let all = args("--target volume:v --memory 64m,256m");
        all.check().expect("of sense");
        assert_eq!(all.trees().len(), 4);
        assert_eq!(args("--target volume:v --phases flood").trees(), []);
        let sets = args("--target volume:v --phases working-set --of content");
        assert_eq!(sets.trees(), [(Bytes(Some(64 << 20)), Of::Content)]);
    }

    #[test]
    fn threads_share_the_files_of_a_flood_in_whole_parts() {
        let some = args("--target volume:v --files 1005 --threads 1,4");
        assert_eq!((some.flood(1).files, some.flood(4).files), (1000, 250));
        for line in [
            "--phases flood",
            "--target volume:v --memory max",
            "--target volume:v --files 30 --threads 4",
            "--target volume:v --paces 0",
            "--target volume:v --rounds 0",
            "--target mem:",
            "--target volume:v --target dir:/x",
        ] {
            assert!(args(line).check().is_err(), "{line}");
        }
    }
}
