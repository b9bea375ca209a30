//! A store that is written through, and an operation that it has performed.

use crate::core::Core;
use crate::evictions;
use crate::shared::or_gone;
use crate::shared::shared_store::SharedStore;
use crate::store::{Done, Operation, Scope, Through};
use crate::types::{Caller, Ino, Result};
use std::time::Instant;

/// A store that is written through, with its file system.
#[derive(Clone, Copy)]
pub(crate) struct ThroughStore<'c> {
    pub(super) core: &'c Core,
    store: &'c dyn Through,
    pub(super) shared: SharedStore<'c>,
}

/// What an operation changed of an inode besides its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Nothing,
    /// Extended attributes and access control lists.
    Rest,
    /// The bytes of a file.
    Content,
}

/// An operation that the store has performed.
pub(crate) struct Performed<'c> {
    pub(super) through: ThroughStore<'c>,
    pub(crate) done: Done,
    /// For each changed directory, the number of changes through this core that had ended before.
    pub(super) changes: [Option<(Ino, u32)>; 2],
    /// The evictions before the operation.
    pub(super) evictions: Box<[u64; evictions::SHARDS]>,
    /// The time before the operation.
    pub(super) begun: Instant,
}

impl<'c> ThroughStore<'c> {
    /// The store, if it is written through.
    #[inline]
    pub(crate) fn of(core: &'c Core) -> Option<Self> {
        Some(Self {
            core,
            store: core.through.as_deref()?,
            shared: core.shared()?,
        })
    }

    /// Asks the store for an operation. With the option `sync`, waits until it is durable, with
    /// `dirsync`, until its directories are.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn perform(self, who: &Caller, operation: &Operation<'_>) -> Result<Performed<'c>> {
        self.core.alive()?;
        let coherence = self.shared.coherence;
        let changes = operation.directories();
        let changes = changes.map(|dir| dir.map(|dir| (dir, coherence.changes(dir))));
        let evictions = Box::new(self.core.evictions.snapshot());
        let begun = self.shared.now();
        let done = self.store.perform(who, operation);
        let done = done.map_err(|error| or_gone(self.core, error))?;
        if self.core.waits_for(Scope::Inodes) {
            self.core.store.commit(None)?;
        } else if self.core.waits_for(Scope::Names) {
            for ino in operation.directories().into_iter().flatten() {
                self.core.store.sync_inode(ino, false)?;
            }
        }
        let through = self;
        Ok(Performed {
            through,
            done,
            changes,
            evictions,
            begun,
        })
    }
}

/// The caller of changes that another change implies: the file system itself.
pub(crate) fn itself() -> Caller {
    Caller {
        checked: true,
        ..Caller::root()
    }
}
