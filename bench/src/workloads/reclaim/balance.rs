//! Inodes and content in turn: how a budget is shared by classes when it is needed for one of them, then for the other, then
//! for both.

use super::tree::{Tree, Visitor, scattered};
use crate::budget::Loads;
use crate::chance::Chance;
use crate::sys;
use anyhow::{Result, bail};
use holdfast_core::Memory;
use holdfast_core::budget::Class;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Instant;

/// The skew of the draws: the object of rank *r* is drawn in proportion to *r* to the power of its negative.
const SKEW: f64 = 0.9;

/// What is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Phase {
    /// Inodes
    Metadata,
    /// Content
    Data,
    /// Either, in turn
    Mix,
}

/// In the order in which they run.
pub(super) const PHASES: [Phase; 3] = [Phase::Metadata, Phase::Data, Phase::Mix];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metadata => "balance-metadata",
            Self::Data => "balance-data",
            Self::Mix => "balance-mix",
        })
    }
}

/// One run, over a tree of files with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Balance {
    pub(super) tree: Tree,
    /// Accesses of each phase.
    pub(super) accesses: u64,
}

/// What a phase came to, its second half: in the first one memory is shared anew.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Costs {
    pub(super) phase: Phase,
    pub(super) accesses: u64,
    /// Accesses that found everything in memory.
    pub(super) hits: u64,
    pub(super) seconds: f64,
    /// Bytes of inodes and names, and of content, in the end.
    pub(super) metadata_bytes: u64,
    pub(super) content_bytes: u64,
}

impl Balance {
    /// Does all phases, one after the other.
    ///
    /// # Errors
    /// The first call that failed; a signal to end.
    pub(super) fn run(&self, visitor: &mut Visitor<'_>) -> Result<Vec<Costs>> {
        let mut chance = Chance::seeded(1);
        let phases = PHASES.into_iter();
        phases
            .map(|phase| self.phase(phase, visitor, &mut chance))
            .collect()
    }

    fn phase(&self, phase: Phase, visitor: &mut Visitor<'_>, chance: &mut Chance) -> Result<Costs> {
        let half = self.accesses / 2;
        let mut hits = 0;
        let mut begun = Instant::now();
        for number in 0..2 * half {
            if number == half {
                (hits, begun) = (0, Instant::now());
            }
            let object = self.tree.used + drawn(self.tree.walked, chance);
            let before = Loads::of_this_thread();
            match (phase, number % 2) {
                (Phase::Metadata, _) | (Phase::Mix, 0) => visitor.stat(object)?,
                _ => visitor.read(object)?,
            }
            hits += u64::from(Loads::of_this_thread() == before);
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let usage = Memory::of_process().seen().usage;
        Ok(Costs {
            phase,
            accesses: half,
            hits,
            seconds,
            metadata_bytes: usage.of(Class::Inodes) + usage.of(Class::Names),
            content_bytes: usage.of(Class::Content),
        })
    }
}

/// A number below this one, small ones oftener by [`SKEW`]: ranks are scattered over the tree, directory by directory they would
/// be neighbours.
fn drawn(end: u32, chance: &mut Chance) -> u32 {
    let flat = 1.0 - SKEW;
    let most = f64::from(end).powf(flat);
    let rank = (chance.part() * (most - 1.0) + 1.0).powf(1.0 / flat) - 1.0;
    scattered((rank as u64).min(u64::from(end) - 1), u64::from(end)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_few_are_drawn_often_and_they_are_no_neighbours() {
        let mut chance = Chance::seeded(3);
        let mut counts = HashMap::new();
        for _ in 0..100_000 {
            *counts.entry(drawn(10_000, &mut chance)).or_insert(0_u32) += 1;
        }
        assert!(counts.keys().all(|&number| number < 10_000));
        let mut often: Vec<(u32, u32)> =
            counts.into_iter().map(|(it, count)| (count, it)).collect();
        often.sort_unstable();
        often.reverse();
        let tenth: u32 = often.iter().take(1000).map(|(count, _)| count).sum();
        // By the sum of the ranks' shares: 1,000^0.1 - 1 of 10,000^0.1 - 1.
        assert!((60_000..70_000).contains(&tenth), "{tenth}");
        assert!(often.len() > 8000, "{}", often.len());
        assert!(often[0].1.abs_diff(often[1].1) > 1);
    }
}
