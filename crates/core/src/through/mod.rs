//! Operations over a store that is written through ([`Through`]): the store first, and memory takes in what came of it.
//!
//! Each operation of the core forks once, where it would change memory, to the one of the same name here. What comes before the fork is common
//! to both: permissions, and which names can be. What comes here: the store is asked to do it, what it tells of the
//! inodes that were touched is [taken in](take_in), names that are in memory change where they still [stand](names), and
//! watchers are told. So nothing is in memory that is not in the store, and nothing has to be written back.
//!
//! *Own changes and those of others.* The store tells of each inode also what it was directly before. If that is what memory has, nobody
//! else changed it, and what is in memory stands but for what the operation changed; else all of it goes.
//!
//! *Locking.* Nothing is locked while the store is asked, but the pages of a file that is written, as when it is read:
//! a store that does not answer holds up those that use the same file, and no unmount.

mod attributes;
mod content;
mod make;
mod names;
mod open;
mod remove;
mod rename;
mod take_in;
mod xattr;

pub(crate) use open::Created;

use crate::file_system::{Core, Scope};
use crate::shared::SharedStore;
use crate::store::{Done, Operation, Through};
use crate::types::{Caller, Result};

/// A store that is written through, with the file system over it.
#[derive(Clone, Copy)]
pub(crate) struct ThroughStore<'c> {
    core: &'c Core,
    store: &'c dyn Through,
    shared: SharedStore<'c>,
}

impl Core {
    /// The store, if it is written through.
    #[inline]
    pub(crate) fn through(&self) -> Option<ThroughStore<'_>> {
        let store = self.through.as_deref()?;
        let core = self;
        let shared = self.shared()?;
        Some(ThroughStore {
            core,
            store,
            shared,
        })
    }
}

impl ThroughStore<'_> {
    /// Has the store do it; waits until it is durable with the option `sync`, until the directories
    /// are with `dirsync`.
    ///
    /// # Errors
    /// What the store answers.
    fn perform(self, who: &Caller, operation: &Operation<'_>) -> Result<Done> {
        self.core.alive()?;
        let done = self.store.perform(who, operation);
        let done = done.map_err(|error| self.core.or_gone(error))?;
        if self.core.waits_for(Scope::Inodes) {
            self.core.store.commit(None)?;
        } else if self.core.waits_for(Scope::Names) {
            for ino in operation.directories().into_iter().flatten() {
                let data_only = false;
                let sync = Operation::Sync { ino, data_only };
                self.store.perform(&itself(), &sync)?;
            }
        }
        Ok(done)
    }
}

/// The caller of a change that another one brings along: the file system itself.
fn itself() -> Caller {
    Caller {
        checked: true,
        ..Caller::root()
    }
}
