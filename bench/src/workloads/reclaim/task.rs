//! What a worker of this workload is given, and the threads that it puts to it.
//!
//! *Invariants.* A worker does one thing, keeps to its budget from before its file system is there
//! until that is gone.

use super::beside::{Beside, Met, Progress};
use super::flood::{Flood, Timed};
use super::tree::{Of, Tree, Visitor};
use crate::budget::{self, Bytes, Opened, Seen, Watch};
use crate::mode::Slots;
use crate::pool::{Pool, Work};
use crate::targets::{Tree as _, volume_over};
use crate::team::worker::Boss;
use anyhow::{Context, Result};
use holdfast_core::{FileSystem, Options};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    /// Of the volume that it works on, in its own process.
    pub(super) image: PathBuf,
    /// The budget, in bytes; no limit if absent.
    pub(super) memory: Option<u64>,
    pub(super) job: Job,
    /// Where it writes what came of it.
    pub(super) scratch: PathBuf,
}

/// What it does.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Job {
    /// Makes empty files, on a volume that is made anew.
    Flood(Flood),
    /// Makes a volume with this tree.
    Make(Tree),
    /// Walks, and uses a working set beside that.
    Beside(Beside),
}

/// What came of it, beside the time that it took.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) seen: Seen,
    /// Of a flood.
    pub(super) timed: Timed,
    /// Accesses that count, and those of them that found their object in memory.
    pub(super) uses: u64,
    pub(super) hits: u64,
}

const OUTCOME: &str = "outcome.json";

impl Outcome {
    /// What the last worker wrote into this folder.
    ///
    /// # Errors
    /// If it wrote nothing of sense.
    pub(super) fn load(scratch: &Path) -> Result<Self> {
        let path = scratch.join(OUTCOME);
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).context("what a worker wrote makes no sense")
    }

    fn store(&self, scratch: &Path) -> Result<()> {
        let path = scratch.join(OUTCOME);
        fs::write(&path, serde_json::to_vec(self)?).with_context(|| path.display().to_string())
    }
}

impl Task {
    /// Does it, when the boss says so.
    ///
    /// # Errors
    /// If the file system cannot be made, opened or closed; orders that make no sense.
    pub(crate) fn staff(&self, slots: Slots, boss: &mut Boss) -> Result<()> {
        let _kept = budget::keep(Bytes(self.memory))?;
        match &self.job {
            Job::Flood(flood) => self.flood(flood, slots, boss),
            Job::Make(tree) => self.make(tree, slots, boss),
            Job::Beside(beside) => self.beside(beside, slots, boss),
        }
    }

    fn flood(&self, flood: &Flood, slots: Slots, boss: &mut Boss) -> Result<()> {
        let tree = volume_over(&self.image, None)?;
        let watch = Watch::start(|| 0)?;
        let timed = Mutex::new(Vec::new());
        let outcome = thread::scope(|scope| {
            let workers = (0..slots.threads).map(|thread| {
                let (mut session, timed) = (tree.session(), &timed);
                move |(): ()| {
                    let own = flood.run(thread, &mut session)?;
                    timed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(own);
                    Ok(Work::from(flood.files))
                }
            });
            boss.serve(&Pool::hire(scope, slots.first, workers)?)
        });
        let timed = timed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = Outcome {
            seen: watch.end()?,
            timed: Timed::together(&timed),
            ..Outcome::default()
        };
        let stored = result.store(&self.scratch);
        outcome.and(stored).and(tree.close())
    }

    /// One thread walks, another one uses.
    fn beside(&self, beside: &Beside, slots: Slots, boss: &mut Boss) -> Result<()> {
        let volume = Opened::open(&self.image, Options::default())?;
        let fs = volume.fs();
        beside.warm_up(&mut Visitor::new(fs, beside.tree))?;
        let watch = Watch::start(held(fs, beside.tree.of))?;
        let (progress, met) = (Progress::default(), Mutex::new(Met::default()));
        let outcome = thread::scope(|scope| {
            let workers = (0..slots.threads).map(|thread| {
                let mut visitor = Visitor::new(fs, beside.tree);
                let (progress, met) = (&progress, &met);
                move |(): ()| match thread {
                    0 => beside.walk(&mut visitor, progress).map(Work::from),
                    _ => {
                        let own = beside.read(&mut visitor, progress)?;
                        *met.lock().unwrap_or_else(PoisonError::into_inner) = own;
                        let (items, aside) = (0, own.uses);
                        Ok(Work { items, aside })
                    }
                }
            });
            boss.serve(&Pool::hire(scope, slots.first, workers)?)
        });
        let met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = Outcome {
            seen: watch.end()?,
            uses: met.uses,
            hits: met.hits,
            ..Outcome::default()
        };
        let stored = result.store(&self.scratch);
        outcome.and(stored).and(volume.close())
    }

    /// One thread makes the tree.
    fn make(&self, tree: &Tree, slots: Slots, boss: &mut Boss) -> Result<()> {
        let volume = Opened::make(&self.image, tree.image_bytes(), Options::default())?;
        let outcome = thread::scope(|scope| {
            let worker = |(): ()| Visitor::new(volume.fs(), *tree).make_all().map(Work::from);
            boss.serve(&Pool::hire(scope, slots.first, [worker])?)
        });
        let stored = Outcome::default().store(&self.scratch);
        outcome.and(stored).and(volume.close())
    }
}

/// Counts the objects that a file system holds. The handle of the counting thread goes before the
/// file system ends.
fn held(fs: &FileSystem, of: Of) -> impl Fn() -> u64 + Send + 'static {
    let fs = fs.clone();
    move || {
        let stats = fs.stats();
        match of {
            Of::Inodes => stats.inodes,
            Of::Content => stats.pages,
        }
    }
}
