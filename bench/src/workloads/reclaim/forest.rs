//! A tree on an image that is too large for its budget, and what is done with it.

use super::NAME;
use super::beside::Beside;
use super::runs::{Runs, image_beside, seen};
use super::task::{Job, Outcome};
use super::tree::{Of, Order, Tree, USED_EACH, WALKED_EACH};
use crate::budget::Bytes;
use crate::mode::Mode;
use crate::targets::{Kept, Target};
use crate::team::Done;
use anyhow::{Context, Result, ensure};

/// A tree on an image, for one budget.
pub(super) struct Forest {
    label: String,
    memory: Bytes,
    tree: Tree,
    kept: Kept,
    /// Objects that the budget holds.
    fit: u32,
}

impl Forest {
    /// Makes the volume with its files, and sees how many of them fit.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn make(
        runs: &mut Runs<'_>,
        label: &str,
        target: &Target,
        memory: Bytes,
        of: Of,
    ) -> Result<Self> {
        let bytes = memory.0.context("a budget is needed")?;
        let tree = Tree::for_budget(of, bytes)?;
        let mut forest = Self {
            label: label.to_owned(),
            memory,
            tree,
            kept: image_beside(target)?,
            fit: 0,
        };
        runs.report
            .doing(format!("{label}: {} files", tree.objects()));
        forest.run(runs, Job::Make(tree), 1)?;
        runs.report.doing(format!("{label}: what fits"));
        let most = tree.walked / 11;
        let walk = Beside {
            tree,
            used: 0,
            walked: (2 * most).next_multiple_of(WALKED_EACH),
            order: Order::Number,
            uses: 1,
            pace: 1,
        };
        let (done, outcome) = forest.run(runs, Job::Beside(walk), 1)?;
        forest.fit = u32::try_from(outcome.seen.held())?.min(most);
        let phase = format!("{of}-fit-{memory}");
        let record = done.record(NAME, label, &phase, Mode::Threads(1), 1);
        runs.report.add(seen(record, memory, outcome))?;
        ensure!(
            forest.fit >= 10 * USED_EACH,
            "only {} objects fit into {memory}: give more --memory",
            forest.fit
        );
        Ok(forest)
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    fn run(&self, runs: &Runs<'_>, job: Job, threads: usize) -> Result<(Done, Outcome)> {
        runs.done(&self.kept, self.memory, job, threads)
    }

    /// All phases of a round.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn measure(&self, runs: &mut Runs<'_>) -> Result<()> {
        let args = runs.args;
        for &order in &args.orders {
            for &uses in &args.uses {
                self.beside(runs, order, uses, None)?;
                for &pace in &args.paces {
                    self.beside(runs, order, uses, Some(pace))?;
                }
            }
        }
        Ok(())
    }

    /// A walk, alone or beside uses of a working set.
    fn beside(
        &self,
        runs: &mut Runs<'_>,
        order: Order,
        uses: u32,
        pace: Option<u32>,
    ) -> Result<()> {
        let used = (self.fit / 10 / USED_EACH * USED_EACH).min(self.tree.used);
        let beside = Beside {
            tree: self.tree,
            used: pace.map_or(0, |_| used),
            walked: self.fit * 10 / WALKED_EACH * WALKED_EACH,
            order,
            uses,
            pace: pace.unwrap_or(1),
        };
        let suffix = pace.map_or("alone".to_owned(), |pace| format!("1/{pace}"));
        let phase = format!("{}-{order}-{uses}x-{suffix}-{}", self.tree.of, self.memory);
        runs.report
            .doing(format!("{}: {phase}, round {}", self.label, runs.round));
        let threads = 1 + usize::from(pace.is_some());
        let (done, outcome) = self.run(runs, Job::Beside(beside), threads)?;
        let record = done.record(
            NAME,
            &self.label,
            &phase,
            Mode::Threads(threads),
            runs.round,
        );
        runs.report.add(seen(record, self.memory, outcome))
    }
}
