//! The command line.

use super::flood::{Flood, PARTS};
use super::subject::Subject;
use super::tree::{Of, Order};
use crate::budget::Bytes;
use crate::report::ReportArgs;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::path::Path;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Phase {
    /// Empty files without end, within the budget and without one
    Flood,
    /// A working set of a tenth of what fits, used beside a walk over ten times as much as fits
    WorkingSet,
    /// Loops over a little more than fits
    Loop,
    /// The same walk six times, over one and a half of what fits
    RepeatedWalk,
    /// One working set, and then another one
    Shift,
    /// Inodes, content, and both in turn
    Balance,
}

/// Whether memory keeps to its budget, at what speed, and what stays in it
#[derive(Args, Clone, Debug)]
pub(crate) struct ReclaimArgs {
    /// What to run on: `volume:PATH`, a volume in a process of its own on a new image beside that path; floods also on
    /// `ext4:IMAGE`, `xfs:IMAGE`, `btrfs:IMAGE` (as root) and `dir:PATH`
    #[arg(long = "target", value_name = "TARGET")]
    pub(super) targets: Vec<Subject>,
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
    /// Files of a flood, of all threads together: 20 times as many as fit show what a full memory costs. 64 MiB hold 180,000
    #[arg(long, value_name = "F", default_value_t = 2_000_000)]
    pub(super) files: u64,
    /// Files of a flood in one directory
    #[arg(long, value_name = "F", default_value_t = 10_000)]
    pub(super) per_dir: u64,
    /// Floods run in a control group that may hold so much, the file systems of the kernel like the others (as root); images
    /// may not lie in a tmpfs, whose pages would be the group's
    #[arg(long, value_name = "SIZE")]
    pub(super) group: Option<Bytes>,
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
    /// Accesses of each phase of a balance, by objects that there are: the first half is to fill memory
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(super) accesses: u32,
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
        ensure!(
            !self.targets.is_empty(),
            "a --target is needed, as `volume:/var/tmp/x`"
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
                .chain([&self.accesses])
                .all(|number| (1..=10_000).contains(number)),
            "uses, paces and accesses: 1 to 10,000"
        );
        ensure!(
            self.group.is_none_or(|group| group.0.is_some()),
            "--group takes a size"
        );
        for target in &self.targets {
            ensure!(
                self.group.is_none() || !is_tmpfs(&target.beside()),
                "{target}: in a tmpfs its pages would be the control group's: put the image elsewhere, or leave out --group"
            );
        }
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

    /// The trees that are needed on a target: for which budget, and of what.
    pub(super) fn trees_of(&self, target: &Subject) -> Vec<(Bytes, Of)> {
        let is_used = |of: &Of| match of {
            Of::Inodes => self.of.contains(of) && self.patterns().next().is_some(),
            Of::Content => {
                self.has(Phase::Balance) || self.of.contains(of) && self.patterns().next().is_some()
            }
        };
        if !matches!(target, Subject::Volume(_)) {
            return Vec::new();
        }
        let each = |&memory| {
            let needed = [Of::Inodes, Of::Content].into_iter().filter(is_used);
            needed.map(move |of| (memory, of)).collect::<Vec<_>>()
        };
        self.memory.iter().flat_map(each).collect()
    }

    /// The phases that use a working set, or part of what does not fit.
    fn patterns(&self) -> impl Iterator<Item = Phase> {
        let all = [
            Phase::WorkingSet,
            Phase::Loop,
            Phase::RepeatedWalk,
            Phase::Shift,
        ];
        all.into_iter().filter(|&phase| self.has(phase))
    }

    /// Records of all rounds, about.
    pub(super) fn expected(&self) -> usize {
        let floods = match self.has(Phase::Flood) {
            true => self.targets.len() * self.threads.len() * (self.memory.len() + 1),
            false => 0,
        };
        let walks = self.orders.len() * self.uses.len() * (self.paces.len() + 1);
        let trees: usize = self
            .targets
            .iter()
            .map(|target| self.trees_of(target).len())
            .sum();
        let each: usize = self
            .patterns()
            .map(|phase| match phase {
                Phase::WorkingSet => walks,
                Phase::Loop => 3,
                _ => 2,
            })
            .sum();
        // What fits is measured once.
        self.rounds * (floods + trees * each) + trees
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
        if let Some(group) = self.group {
            parts.push(format!("in a control group of {group}"));
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

/// Do files there stay in memory?
fn is_tmpfs(folder: &Path) -> bool {
    /// `TMPFS_MAGIC` of the kernel's `magic.h`.
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    rustix::fs::statfs(folder).is_ok_and(|found| found.f_type == TMPFS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    fn args(line: &str) -> ReclaimArgs {
        parsed(line.split_whitespace()).expect("arguments")
    }

    #[test]
    fn only_volumes_have_trees_and_only_for_phases_that_use_them() {
        let all = args("--target volume:v --target ext4:e --memory 64m,256m");
        all.check().expect("of sense");
        assert_eq!(all.trees_of(&all.targets[0]).len(), 4);
        assert_eq!(all.trees_of(&all.targets[1]), []);
        let flood = args("--target volume:v --phases flood");
        assert_eq!(flood.trees_of(&flood.targets[0]), []);
        let balance = args("--target volume:v --phases balance --of inodes");
        let trees = balance.trees_of(&balance.targets[0]);
        assert_eq!(trees, [(Bytes(Some(64 << 20)), Of::Content)]);
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
            "--target volume:v --group max",
        ] {
            assert!(args(line).check().is_err(), "{line}");
        }
        if is_tmpfs(Path::new("/dev/shm")) {
            let line = "--target volume:/dev/shm/x --group 512m";
            let error = args(line).check().expect_err("refused").to_string();
            assert!(error.contains("tmpfs"), "{error}");
        }
    }
}
