//! The two ways of changing a store, and the write-behind way: memory first, the store after it.

use std::sync::Arc;

use super::{Change, Grant, Intent, Space, Through};
use crate::types::{Ino, Result};

/// How a store is changed.
#[derive(Clone)]
pub enum Writes {
    /// The core is the only writer: it reserves, changes memory, and then hands the changes over.
    Behind(Arc<dyn Behind>),
    /// Other processes change the store too: the core asks it for the operation, and memory
    /// follows.
    Through(Arc<dyn Through>),
}

/// A point in a store's order of changes: [`Store::commit`](super::Store::commit) makes all up to
/// it durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

/// A store that is written behind.
///
/// *Invariant.* [`apply`](Self::apply) of changes that [`reserve`](Self::reserve) covered cannot
/// fail for want of space or memory. So the core changes memory between the two calls.
pub trait Behind: Send + Sync + 'static {
    /// Reserves what an operation may need, all or nothing, before anything is changed. It may
    /// block in a commit that frees space. The caller keeps the grant in a
    /// [`Reservation`](super::Reservation), or passes it to [`apply`](Self::apply) or
    /// [`give_back`](Self::give_back).
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `ENOMEM`: there is no room, and nothing was reserved. `EROFS`, `EIO`:
    /// the store accepts no changes.
    fn reserve(&self, intent: &Intent) -> Result<Grant>;

    /// Like [`reserve`](Self::reserve), but never blocks: `None` if room would have to be made
    /// first.
    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.reserve(intent).ok()
    }

    /// Returns an unused grant.
    fn give_back(&self, held: Grant);

    /// Frees space that was in use: of pages, inodes and names that were removed.
    fn release(&self, space: Space);

    /// Accepts the changes of one operation, in order, and uses their reservation. They are durable
    /// after a [`Store::commit`](super::Store::commit).
    ///
    /// After each batch, attributes agree with names and content, also while other threads change
    /// the same inodes. `InodeRecord::nlink` equals the number of names entered, and `size` changes
    /// only with a change of the content.
    ///
    /// # Errors
    /// `EIO` if the device failed: no change of the batch was accepted, and the core stops writing.
    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn>;

    /// Reserves for a batch as if none of its pages had space, and applies it. For callers that
    /// have changed nothing yet.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve) and [`apply`](Self::apply); no change of the batch was
    /// accepted.
    fn change(&self, batch: &[Change<'_>]) -> Result<Lsn> {
        let intent = Intent::of(batch);
        let intent = Intent {
            pages: intent.written + intent.allocated,
            moved: intent.ranges,
            ..intent
        };
        self.apply(&mut self.reserve(&intent)?, batch)
    }

    /// The highest inode number ever used; the core allocates numbers above it.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn last_ino(&self) -> Result<Ino>;
}
