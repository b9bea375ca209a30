//! Accesses of one thread that a rule may be bad at: loops over a little more than fits, walks that are repeated, a working set
//! that changes.
//!
//! All are given by how many objects fit.

use super::beside::Met;
use super::tree::{Tree, Visitor};
use crate::budget::Loads;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How often a loop is gone through, the first time included, in which nothing can be found.
const LAPS: u32 = 6;
/// Walks of [`Kind::RepeatedWalk`], over so many hundredths of what fits.
const WALKS: u32 = 6;
const WALK_PERCENT: u32 = 150;
/// Objects walked there for one use of a working set of a tenth of what fits.
const WALK_PACE: u32 = 50;
/// How often each working set of a shift is read.
const SHIFT_READS: u32 = 6;

/// Which accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Kind {
    /// Round and round over so many hundredths of what fits; what counts is all but the first round.
    Loop(u32),
    /// The same walk six times over one and a half of what fits, with one use of a working set of a tenth for 50 objects; what
    /// counts is the working set, or all.
    RepeatedWalk(Counted),
    /// From one working set of so many hundredths of what fits to another one, beside as many objects that are used once;
    /// what counts are the uses of the new one.
    Shift(u32),
}

/// What counts of repeated walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Counted {
    /// The working set.
    Used,
    /// All accesses.
    All,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop(percent) => write!(f, "loop-{percent}%"),
            Self::RepeatedWalk(Counted::Used) => f.write_str("repeated-walk-used"),
            Self::RepeatedWalk(Counted::All) => f.write_str("repeated-walk-all"),
            Self::Shift(percent) => write!(f, "shift-{percent}%"),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Pattern {
    pub(super) tree: Tree,
    /// Objects that fit.
    pub(super) fit: u32,
    pub(super) kind: Kind,
}

impl Pattern {
    /// Goes through all accesses: which object, and whether it counts.
    ///
    /// # Errors
    /// The first one of `access`.
    pub(super) fn each(&self, mut access: impl FnMut(u32, bool) -> Result<()>) -> Result<()> {
        let walked = self.tree.used..self.tree.objects() as u32;
        let part = |percent: u32| (u64::from(self.fit) * u64::from(percent) / 100) as u32;
        match self.kind {
            Kind::Loop(percent) => {
                let round = part(percent).min(walked.len() as u32);
                for lap in 0..LAPS {
                    for object in walked.clone().take(round as usize) {
                        access(object, lap > 0)?;
                    }
                }
            }
            Kind::RepeatedWalk(counted) => {
                let used = (self.fit / 10).clamp(1, self.tree.used);
                let round = part(WALK_PERCENT) as usize;
                let mut uses = (0..used).cycle();
                for _ in 0..3 {
                    (0..used).try_for_each(|object| access(object, false))?;
                    // Something else in between, so that these are three uses and not one burst.
                    let between = walked.clone().rev().take(used as usize);
                    between
                        .into_iter()
                        .try_for_each(|object| access(object, false))?;
                }
                for _ in 0..WALKS {
                    for (object, number) in walked.clone().take(round).zip(0_u32..) {
                        access(object, counted == Counted::All)?;
                        if number % WALK_PACE == 0
                            && let Some(object) = uses.next()
                        {
                            access(object, true)?;
                        }
                    }
                }
            }
            Kind::Shift(percent) => {
                let size = part(percent) as usize;
                // Two working sets, and behind them what is used once.
                let mut once = walked.clone().skip(2 * size);
                for (set, counts) in [(0, false), (1, true)] {
                    for _ in 0..SHIFT_READS {
                        for object in walked.clone().skip(set * size).take(size) {
                            access(object, counts)?;
                            match once.next() {
                                Some(object) => access(object, false)?,
                                None => bail!("the tree is too small for a shift"),
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Does them; also says how many there were.
    ///
    /// # Errors
    /// The first call that failed; a signal to end.
    pub(super) fn run(&self, visitor: &mut Visitor<'_>) -> Result<(Met, u64)> {
        let (mut met, mut all) = (Met::default(), 0);
        self.each(|object, counts| {
            let before = Loads::of_this_thread();
            visitor.look(object)?;
            all += 1;
            if counts {
                met.uses += 1;
                met.hits += u64::from(Loads::of_this_thread() == before);
            }
            if crate::sys::end_asked() {
                bail!("interrupted");
            }
            Ok(())
        })?;
        Ok((met, all))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Of;
    use super::*;

    fn counts(kind: Kind) -> (usize, usize, Vec<u32>) {
        let pattern = Pattern {
            tree: Tree {
                of: Of::Inodes,
                used: 100,
                walked: 11_000,
            },
            fit: 1000,
            kind,
        };
        let (mut all, mut counted) = (0, Vec::new());
        let access = |object, counts| {
            all += 1;
            if counts {
                counted.push(object);
            }
            Ok(())
        };
        pattern.each(access).expect("large enough");
        (all, counted.len(), counted)
    }

    #[test]
    fn a_loop_counts_all_rounds_but_the_first() {
        let (all, count, objects) = counts(Kind::Loop(105));
        assert_eq!((all, count), (6 * 1050, 5 * 1050));
        assert_eq!((objects[0], objects[1049], objects[1050]), (100, 1149, 100));
    }

    #[test]
    fn repeated_walks_have_a_use_of_the_set_for_fifty_objects() {
        let (all, used, objects) = counts(Kind::RepeatedWalk(Counted::Used));
        assert_eq!((all, used), (600 + 6 * 1530, 6 * 30));
        assert!(objects.iter().all(|&object| object < 100));
        let (same, all_counted, _) = counts(Kind::RepeatedWalk(Counted::All));
        assert_eq!((same, all_counted), (all, 6 * 1530));
    }

    #[test]
    fn a_shift_counts_the_new_set_beside_objects_that_come_once() {
        let (all, count, mut objects) = counts(Kind::Shift(30));
        assert_eq!((all, count), (2 * 2 * 6 * 300, 6 * 300));
        objects.dedup();
        assert_eq!((objects[0], objects[299], objects[300]), (400, 699, 400));
    }
}
