//! The progress of a check.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The stage of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// Attributes.
    Inodes,
    /// Names and their hashes.
    Names,
    /// Content and its place.
    Data,
    /// Bitmaps.
    Space,
    /// The end.
    Done,
}

/// Called with the stage, the records checked so far, and their total; from any thread.
pub type Progress<'p> = dyn Fn(Stage, u64, u64) + Sync + 'p;

const STAGES: [Stage; 5] = [
    Stage::Inodes,
    Stage::Names,
    Stage::Data,
    Stage::Space,
    Stage::Done,
];
/// Records from one call to the next.
const EVERY: u64 = 4096;

/// Counts records.
pub(super) struct Meter<'p> {
    progress: &'p Progress<'p>,
    stage: AtomicU8,
    done: AtomicU64,
    all: u64,
}

impl<'p> Meter<'p> {
    pub(super) fn new(progress: &'p Progress<'p>, all: u64) -> Self {
        Self {
            progress,
            stage: AtomicU8::new(0),
            done: AtomicU64::new(0),
            all,
        }
    }

    pub(super) fn begin(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
        (self.progress)(stage, self.done.load(Ordering::Relaxed), self.all);
    }

    /// Counts a record.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(EVERY) {
            let stage = STAGES[usize::from(self.stage.load(Ordering::Relaxed))];
            (self.progress)(stage, done, self.all);
        }
    }
}
