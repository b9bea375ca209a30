//! What a worker of this workload is given, and the threads that it puts to it.
//!
//! *Invariants.* A worker does one thing, keeps to its budget from before its file system is there until that is gone, and
//! is in its control group before it takes memory for it.

use super::balance::{Balance, Costs};
use super::beside::{Beside, Met, Progress};
use super::flood::{Flood, Timed};
use super::pattern::Pattern;
use super::tree::{Of, Tree, Visitor};
use crate::budget::{self, Bytes, Opened, Seen, Watch, enter};
use crate::crew::{Crew, Work};
use crate::shape::Seats;
use crate::targets::{self, DirectoryTree, Session, Tree as _, volume_over};
use crate::team::worker::Boss;
use anyhow::{Context, Result};
use holdfast_core::{FileSystem, Memory, Options};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(super) place: Place,
    /// The budget, in bytes; no limit if absent.
    pub(super) memory: Option<u64>,
    /// The control group that it runs in.
    pub(super) group: Option<PathBuf>,
    pub(super) job: Job,
    /// Where it writes what came of it.
    pub(super) scratch: PathBuf,
}

/// Where it works.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Place {
    /// A volume on this image, in the worker's process.
    Image(PathBuf),
    /// A directory of the host.
    Directory(PathBuf),
    /// The root of a file system of the host that goes with all that is in it.
    Mounted(PathBuf),
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
    /// Uses files by one thread.
    Pattern(Pattern),
    /// Uses inodes and content in turn.
    Balance(Balance),
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
    /// Of phases of a balance.
    pub(super) costs: Vec<Costs>,
    /// Bytes that each class held in the end, by name, and what nobody counts.
    pub(super) classes: Vec<(String, u64)>,
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
    pub(crate) fn staff(&self, seats: Seats, boss: &mut Boss) -> Result<()> {
        if let Some(group) = &self.group {
            enter(group)?;
        }
        let _kept = budget::keep(Bytes(self.memory))?;
        match (&self.job, &self.place) {
            (Job::Flood(flood), Place::Image(image)) => {
                let tree = volume_over(image, None)?;
                let told = self.flood(&tree, flood, seats, boss);
                told.and(tree.close())
            }
            (Job::Flood(flood), Place::Directory(path)) => {
                let tree = DirectoryTree::new(path)?;
                let told = self.flood(&tree, flood, seats, boss);
                told.and(tree.close())
            }
            (Job::Flood(flood), Place::Mounted(path)) => {
                let tree = DirectoryTree::new(path)?;
                let told = self.flood(&tree, flood, seats, boss);
                tree.leave();
                told
            }
            (Job::Make(tree), Place::Image(image)) => {
                let volume = Opened::make(image, tree.image_bytes(), Options::default())?;
                self.on(volume, boss, seats, |fs| {
                    let items = Visitor::new(fs, *tree).make_all()?;
                    Ok((Work::from(items), Outcome::default()))
                })
            }
            (Job::Beside(beside), Place::Image(image)) => self.beside(beside, image, seats, boss),
            (Job::Pattern(pattern), Place::Image(image)) => {
                // What comes ahead is found in memory without ever having been kept there.
                let options = Options {
                    statahead: false,
                    ..Options::default()
                };
                let volume = Opened::open(image, options)?;
                self.on(volume, boss, seats, |fs| {
                    let (met, all) = pattern.run(&mut Visitor::new(fs, pattern.tree))?;
                    Ok((Work::from(all), Outcome::of(met)))
                })
            }
            (Job::Balance(balance), Place::Image(image)) => {
                let volume = Opened::open(image, Options::default())?;
                self.on(volume, boss, seats, |fs| {
                    let costs = balance.run(&mut Visitor::new(fs, balance.tree))?;
                    let accesses = costs.iter().map(|it| it.accesses).sum::<u64>();
                    let outcome = Outcome {
                        costs,
                        ..Outcome::default()
                    };
                    Ok((Work::from(accesses), outcome))
                })
            }
            (_, Place::Directory(path) | Place::Mounted(path)) => {
                anyhow::bail!("{}: not for this phase", path.display())
            }
        }
    }

    fn flood<T: targets::Tree>(
        &self,
        tree: &T,
        flood: &Flood,
        seats: Seats,
        boss: &mut Boss,
    ) -> Result<()>
    where
        for<'t> T::Session<'t>: Session,
    {
        let watch = Watch::start(|| 0)?;
        let timed = Mutex::new(Vec::new());
        let outcome = thread::scope(|scope| {
            let workers = (0..seats.threads).map(|thread| {
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
            boss.serve(&Crew::hire(scope, seats.first, workers)?)
        });
        let timed = timed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let told = Outcome {
            seen: watch.end()?,
            timed: Timed::together(&timed),
            classes: classes(),
            ..Outcome::default()
        };
        outcome.and(told.store(&self.scratch))
    }

    /// One thread walks, another one uses.
    fn beside(&self, beside: &Beside, image: &Path, seats: Seats, boss: &mut Boss) -> Result<()> {
        let volume = Opened::open(image, Options::default())?;
        let fs = volume.fs();
        beside.warm_up(&mut Visitor::new(fs, beside.tree))?;
        let watch = Watch::start(held(fs, beside.tree.of))?;
        let (progress, met) = (Progress::default(), Mutex::new(Met::default()));
        let outcome = thread::scope(|scope| {
            let workers = (0..seats.threads).map(|thread| {
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
            boss.serve(&Crew::hire(scope, seats.first, workers)?)
        });
        let met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
        let told = Outcome {
            seen: watch.end()?,
            classes: classes(),
            ..Outcome::of(met)
        };
        let stored = told.store(&self.scratch);
        outcome.and(stored).and(volume.close())
    }

    /// One thread does it.
    fn on(
        &self,
        volume: Opened,
        boss: &mut Boss,
        seats: Seats,
        job: impl Fn(&FileSystem) -> Result<(Work, Outcome)> + Send + Sync,
    ) -> Result<()> {
        let of = match &self.job {
            Job::Pattern(pattern) => pattern.tree.of,
            _ => Of::Inodes,
        };
        let fs = volume.fs();
        let watch = Watch::start(held(fs, of))?;
        let told = Mutex::new(Outcome::default());
        let outcome = thread::scope(|scope| {
            let worker = |(): ()| {
                let (work, own) = job(fs)?;
                *told.lock().unwrap_or_else(PoisonError::into_inner) = own;
                Ok(work)
            };
            boss.serve(&Crew::hire(scope, seats.first, [worker])?)
        });
        let told = Outcome {
            seen: watch.end()?,
            classes: classes(),
            ..told.into_inner().unwrap_or_else(PoisonError::into_inner)
        };
        let stored = told.store(&self.scratch);
        outcome.and(stored).and(volume.close())
    }
}

impl Outcome {
    fn of(met: Met) -> Self {
        Self {
            uses: met.uses,
            hits: met.hits,
            ..Self::default()
        }
    }
}

/// Counts the objects that a file system holds. The handle of the counting thread goes before the file system ends.
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

/// Bytes of each class of this process's memory, as they were seen last, and what is resident beyond them.
fn classes() -> Vec<(String, u64)> {
    let seen = Memory::of_process().seen();
    let named = holdfast_core::budget::Class::ALL
        .map(|class| (class.name().to_owned(), seen.usage.of(class)));
    let not_counted = seen
        .resident
        .map(|bytes| bytes.saturating_sub(seen.usage.total()));
    let rest = not_counted.map(|bytes| ("not counted".to_owned(), bytes));
    named
        .into_iter()
        .chain(rest)
        .filter(|(_, bytes)| *bytes > 0)
        .collect()
}
