//! A working set that is used again and again while another thread walks over ten times as much as
//! fits.
//!
//! The walk goes as fast as it can; the reader uses one object for so many walked, as far as it can
//! keep up.

use super::tree::{Order, Tree, Visitor, scattered};
use crate::budget::Loads;
use crate::sys;
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// How long the reader waits before it looks again how far the walk has come.
const PAUSE: Duration = Duration::from_micros(20);

/// How often the working set is read before the walk, with as many other objects in between as a
/// fifth of it all.
const READS_BEFORE: u32 = 3;
const BETWEEN_PART: u32 = 5;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Beside {
    pub(super) tree: Tree,
    /// Objects of the working set; 0: nothing is read beside the walk.
    pub(super) used: u32,
    /// Objects that are walked.
    pub(super) walked: u32,
    pub(super) order: Order,
    /// Uses of each object that is walked, in a row.
    pub(super) uses: u32,
    /// Objects that are walked for one use of the working set.
    pub(super) pace: u32,
}

/// What the reader met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) uses: u64,
    pub(super) hits: u64,
}

/// How far the walk has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Relaxed: nothing is published by it.
    walked: AtomicU32,
    over: AtomicBool,
}

impl Beside {
    /// Objects in the order in which they are used before the walk.
    pub(super) fn before(&self) -> impl Iterator<Item = u32> + use<> {
        let this = *self;
        let reads = match this.used {
            0 => 0,
            _ => READS_BEFORE,
        };
        // From the end of the tree, where the walk does not come.
        let end = this.tree.objects() as u32;
        let between = (this.walked / 10 / BETWEEN_PART).min(end - this.tree.used - this.walked);
        (0..reads).flat_map(move |read| {
            let count = if read + 1 < reads { between } else { 0 };
            (0..this.used).chain(end - count..end)
        })
    }

    /// The object of a use.
    fn used_at(&self, number: u64) -> u32 {
        scattered(number, u64::from(self.used)) as u32
    }

    /// Brings the working set to where it is found.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn warm_up(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        self.before().try_for_each(|object| visitor.look(object))
    }

    /// Walks; the number of objects.
    ///
    /// # Errors
    /// The first call that failed; a signal to end.
    pub(super) fn walk(&self, visitor: &mut Visitor<'_>, progress: &Progress) -> Result<u64> {
        let walked = self.walk_on(visitor, progress);
        progress.over.store(true, Relaxed);
        walked
    }

    fn walk_on(&self, visitor: &mut Visitor<'_>, progress: &Progress) -> Result<u64> {
        let mut walked = 0;
        for object in self.tree.walk(self.walked, self.order) {
            for _ in 0..self.uses {
                visitor.look(object)?;
            }
            walked += 1;
            progress.walked.store(walked, Relaxed);
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        Ok(u64::from(walked))
    }

    /// Uses the working set until the walk is over.
    ///
    /// # Errors
    /// The first call that failed.
    pub(super) fn read(&self, visitor: &mut Visitor<'_>, progress: &Progress) -> Result<Met> {
        let mut met = Met::default();
        ensure!(self.used > 0, "there is no working set");
        loop {
            // So many are walked before the next use.
            let due = met.uses * u64::from(self.pace);
            while u64::from(progress.walked.load(Relaxed)) < due && !progress.over.load(Relaxed) {
                sleep(PAUSE);
            }
            if progress.over.load(Relaxed) {
                return Ok(met);
            }
            let before = Loads::of_this_thread();
            visitor.look(self.used_at(met.uses))?;
            let hit = Loads::of_this_thread() == before;
            met.uses += 1;
            met.hits += u64::from(hit);
        }
    }
}
