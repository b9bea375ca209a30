//! How far a check has come.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What is being looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// Attributes.
    Inodes,
    /// Names and their hashes.
    Names,
    /// Content and where it lies.
    Data,
    /// Bitmaps.
    Space,
    /// Nothing more.
    Done,
}

/// Is told the stage, the records looked at so far, and how many there are; from any thread.
pub type Progress<'p> = dyn Fn(Stage, u64, u64) + Sync + 'p;

const STAGES: [Stage; 5] = [
    Stage::Inodes,
    Stage::Names,
    Stage::Data,
    Stage::Space,
    Stage::Done,
];
/// Records from one message to the next.
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

    /// One record more.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(EVERY) {
            let stage = STAGES[usize::from(self.stage.load(Ordering::Relaxed))];
            (self.progress)(stage, done, self.all);
        }
    }
}
