//! A working set that is used again and again while another thread walks over ten times as much as fits.
//!
//! The walk goes as fast as it can; the reader uses one object for so many walked, as far as it can keep up. What it did is
//! written down, with the place of the walk, so that rules can be held against the very same accesses.

use super::tree::{Order, Tree, Visitor, scattered};
use crate::budget::Loads;
use crate::sys;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// How long the reader waits before it looks again how far the walk has come.
const PAUSE: Duration = Duration::from_micros(20);

/// The mark of a use that found its object in memory, among the bits of a place.
const HIT: u32 = 1 << 31;

/// How often the working set is read before the walk, with as many other objects in between as a fifth of it all.
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

    /// Uses the working set until the walk is over, and writes each use down.
    ///
    /// # Errors
    /// The first call that failed; if the file cannot be written.
    pub(super) fn read(
        &self,
        visitor: &mut Visitor<'_>,
        progress: &Progress,
        trace: &Path,
    ) -> Result<Met> {
        let told = || trace.display().to_string();
        let mut lines = BufWriter::new(File::create(trace).with_context(told)?);
        let mut met = Met::default();
        ensure!(self.used > 0, "there is no working set");
        loop {
            // So many are walked before the next use.
            let due = met.uses * u64::from(self.pace);
            while u64::from(progress.walked.load(Relaxed)) < due && !progress.over.load(Relaxed) {
                sleep(PAUSE);
            }
            if progress.over.load(Relaxed) {
                lines.flush().with_context(told)?;
                return Ok(met);
            }
            let before = Loads::of_this_thread();
            visitor.look(self.used_at(met.uses))?;
            let hit = Loads::of_this_thread() == before;
            let at = progress.walked.load(Relaxed) | if hit { HIT } else { 0 };
            lines.write_all(&at.to_le_bytes()).with_context(told)?;
            met.uses += 1;
            met.hits += u64::from(hit);
        }
    }

    /// Goes through all accesses of a run in the order in which they were; `access` is told whether it is one of those that
    /// count.
    pub(super) fn replay(&self, trace: &Trace, mut access: impl FnMut(u32, bool)) {
        self.before().for_each(|object| access(object, false));
        let places = trace.0.iter().map(|place| place & !HIT);
        let objects = (0..).map(|number| self.used_at(number));
        let mut uses = places.zip(objects).peekable();
        for (object, walked) in self.tree.walk(self.walked, self.order).zip(0..) {
            while let Some((_, used)) = uses.next_if(|(place, _)| *place <= walked) {
                access(used, true);
            }
            (0..self.uses).for_each(|_| access(object, false));
        }
        uses.for_each(|(_, used)| access(used, true));
    }
}

/// What a reader wrote down: how far the walk had come at each use, and whether its object was in memory.
#[derive(Debug, Default)]
pub(super) struct Trace(Vec<u32>);

impl Trace {
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let (places, _) = bytes.as_chunks();
        Ok(Self(
            places
                .iter()
                .map(|&place| u32::from_le_bytes(place))
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Of;
    use super::*;
    use crate::budget::Opened;
    use holdfast_core::Options;

    const RUN: Beside = Beside {
        tree: Tree {
            of: Of::Inodes,
            used: 200,
            walked: 2500,
        },
        used: 100,
        walked: 2000,
        order: Order::Number,
        uses: 2,
        pace: 10,
    };

    #[test]
    fn accesses_are_replayed_in_the_order_in_which_they_were() {
        // Two uses before the walk, one when 1,000 objects had been walked, one after it.
        let trace = Trace(vec![HIT, 0, HIT | 1000, 2000]);
        let mut all = Vec::new();
        RUN.replay(&trace, |object, counts| all.push((object, counts)));
        let counted: Vec<_> = all.iter().filter(|(_, counts)| *counts).collect();
        assert_eq!(counted, [&(0, true), &(3, true), &(6, true), &(9, true)]);
        let before: Vec<u32> = RUN.before().collect();
        assert_eq!(before.len(), 3 * 100 + 2 * 40);
        assert_eq!((before[99], before[100], before[140]), (99, 2660, 0));
        let walk = &all[before.len()..];
        assert_eq!(
            walk[2..6],
            [(200, false), (200, false), (201, false), (201, false)]
        );
        let place = walk.iter().position(|&it| it == (6, true));
        assert_eq!(place, Some(2 + 2 * 1000));
        assert_eq!(walk.last(), Some(&(9, true)));
        assert_eq!(walk.len(), 4 + 2 * 2000);
    }

    #[test]
    fn a_reader_keeps_its_pace_and_counts_what_it_had_to_load() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let image = folder.path().join("image");
        let options = Options::default();
        let volume = Opened::make(&image, 1 << 30, options).expect("made");
        Visitor::new(volume.fs(), RUN.tree)
            .make_all()
            .expect("made");
        volume.close().expect("closed");
        let run = |volume: &Opened, trace: &str| {
            let trace = folder.path().join(trace);
            let progress = Progress::default();
            let visitor = || Visitor::new(volume.fs(), RUN.tree);
            let met = std::thread::scope(|scope| {
                let reader = scope.spawn(|| RUN.read(&mut visitor(), &progress, &trace));
                assert_eq!(RUN.walk(&mut visitor(), &progress).expect("walked"), 2000);
                reader.join().expect("thread").expect("read")
            });
            let trace = Trace::load(&trace).expect("written");
            let hits = trace.0.iter().filter(|&&place| place & HIT != 0).count();
            assert_eq!(
                met,
                Met {
                    uses: trace.0.len() as u64,
                    hits: hits as u64
                }
            );
            assert!(met.uses <= 201, "one for ten: {met:?}");
            for (number, place) in trace.0.iter().enumerate() {
                assert!(
                    (place & !HIT) as usize >= 10 * number,
                    "not before its time"
                );
            }
            met
        };
        // The walk may be over before the reader has begun.
        let cold = (0..100).find_map(|_| {
            let volume = Opened::open(&image, options).expect("opened");
            let met = run(&volume, "cold");
            volume.close().expect("closed");
            (met.uses > 0).then_some(met)
        });
        let cold = cold.expect("a use");
        assert!(cold.hits < cold.uses, "the first was nowhere: {cold:?}");
        let volume = Opened::open(&image, options).expect("opened");
        RUN.warm_up(&mut Visitor::new(volume.fs(), RUN.tree))
            .expect("read");
        let warm = run(&volume, "warm");
        assert_eq!(warm.hits, warm.uses, "all of it fits");
        volume.close().expect("closed");
    }
}
