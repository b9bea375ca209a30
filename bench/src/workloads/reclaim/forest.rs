//! A tree on an image that is too large for its budget, and what is done with it.

use super::NAME;
use super::args::Phase;
use super::balance::Balance;
use super::beside::Beside;
use super::pattern::{Counted, Kind, Pattern};
use super::runs::{Runs, folder_of, seen};
use super::subject::Subject;
use super::task::{Job, Outcome, Place};
use super::tree::{Of, Order, Tree, USED_EACH, WALKED_EACH};
use crate::budget::Bytes;
use crate::record::Record;
use crate::shape::Shape;
use crate::targets::Kept;
use crate::team::Done;
use anyhow::{Context, Result, bail, ensure};

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
        target: &Subject,
        memory: Bytes,
        of: Of,
    ) -> Result<Self> {
        let Subject::Volume(path) = target else {
            bail!("only volumes have a budget of their own");
        };
        let bytes = memory.0.context("a budget is needed")?;
        let tree = Tree::for_budget(of, bytes)?;
        let mut forest = Self {
            label: label.to_owned(),
            memory,
            tree,
            kept: Kept::beside(path)?,
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
        let record = done.record(NAME, label, &phase, Shape::Threads(1), 1);
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
        let place = (Place::Image(self.kept.image()), self.memory);
        runs.done(place, job, threads, &folder_of(&self.kept)?)
    }

    /// All phases of a round.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn measure(&self, runs: &mut Runs<'_>) -> Result<()> {
        let args = runs.args;
        if args.of.contains(&self.tree.of) {
            if args.has(Phase::WorkingSet) {
                for &order in &args.orders {
                    for &uses in &args.uses {
                        self.beside(runs, order, uses, None)?;
                        for &pace in &args.paces {
                            self.beside(runs, order, uses, Some(pace))?;
                        }
                    }
                }
            }
            let loops = [105, 150, 300].map(Kind::Loop);
            let walks = [Counted::Used, Counted::All].map(Kind::RepeatedWalk);
            let shifts = [30, 50].map(Kind::Shift);
            for (phase, kinds) in [
                (Phase::Loop, &loops[..]),
                (Phase::RepeatedWalk, &walks),
                (Phase::Shift, &shifts),
            ] {
                let mut kinds = kinds.iter().filter(|_| args.has(phase));
                kinds.try_for_each(|&kind| self.pattern(runs, kind))?;
            }
        }
        if args.has(Phase::Balance) && self.tree.of == Of::Content {
            self.balance(runs)?;
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
            Shape::Threads(threads),
            runs.round,
        );
        runs.report.add(seen(record, self.memory, outcome))
    }

    /// Accesses of one thread.
    fn pattern(&self, runs: &mut Runs<'_>, kind: Kind) -> Result<()> {
        let pattern = Pattern {
            tree: self.tree,
            fit: self.fit,
            kind,
        };
        let phase = format!("{}-{kind}-{}", self.tree.of, self.memory);
        runs.report
            .doing(format!("{}: {phase}, round {}", self.label, runs.round));
        let (done, outcome) = self.run(runs, Job::Pattern(pattern), 1)?;
        // What comes first takes longest, and all of that time fewer are held.
        let held = outcome.seen.held_most();
        let record = done.record(NAME, &self.label, &phase, Shape::Threads(1), runs.round);
        let record = seen(record, self.memory, outcome);
        runs.report.add(Record {
            held: Some(held),
            ..record
        })
    }

    fn balance(&self, runs: &mut Runs<'_>) -> Result<()> {
        runs.report
            .doing(format!("{}: balance, round {}", self.label, runs.round));
        let balance = Balance {
            tree: self.tree,
            accesses: u64::from(self.tree.walked) * u64::from(runs.args.accesses),
        };
        let (done, outcome) = self.run(runs, Job::Balance(balance), 1)?;
        for costs in &outcome.costs {
            let phase = format!("{}-{}", costs.phase, self.memory);
            let record = done.record(NAME, &self.label, &phase, Shape::Threads(1), runs.round);
            let classes = [
                ("metadata".to_owned(), costs.metadata_bytes),
                ("content".to_owned(), costs.content_bytes),
            ];
            runs.report.add(Record {
                items: costs.accesses,
                seconds: costs.seconds,
                budget_bytes: self.memory.0,
                rss_bytes_samples: Some(outcome.seen.resident.clone()),
                uses: Some(costs.accesses),
                hits: Some(costs.hits),
                class_bytes: Some(classes.into_iter().collect()),
                ..record
            })?;
        }
        Ok(())
    }
}
