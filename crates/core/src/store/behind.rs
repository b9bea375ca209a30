//! How a store is changed; of the two ways the one behind: memory first, the store after it.

use std::sync::Arc;

use super::{Change, Grant, Intent, Space, Through};
use crate::types::{Ino, Result};

/// How a store is changed.
#[derive(Clone)]
pub enum Writes {
    /// Nobody else changes it: the core reserves, changes memory, and hands over what it did.
    Behind(Arc<dyn Behind>),
    /// Others change it as well: it is asked first, and asking is doing.
    Through(Arc<dyn Through>),
}

/// The point in a store's order of changes up to which a [`Store::commit`](super::Store::commit) makes things durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

/// A store that is written behind.
///
/// *Invariant.* Between [`reserve`](Self::reserve) and [`apply`](Self::apply) nothing has to be asked any more: what was
/// reserved for cannot be refused for want of anything. So memory may be changed between the two.
pub trait Behind: Send + Sync + 'static {
    /// Keeps room for all that an operation may need, all or nothing, before anything is changed. May wait: a
    /// store that would have room after a commit makes one first. The caller puts it into a
    /// [`Reservation`](super::Reservation), or hands it to [`apply`](Self::apply) or [`give_back`](Self::give_back).
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `ENOMEM`: there is no room, and nothing was reserved. `EROFS`, `EIO`: nothing can be
    /// changed any more.
    fn reserve(&self, intent: &Intent) -> Result<Grant>;

    /// As [`reserve`](Self::reserve), but never waits: `None` where room would have to be made first.
    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.reserve(intent).ok()
    }

    /// Takes back what was reserved and is not used.
    fn give_back(&self, held: Grant);

    /// Takes back space that was used: of pages, inodes and names that went.
    fn release(&self, space: Space);

    /// Accepts one operation's changes, in order, and uses what was reserved for them. Durable only after a
    /// [`Store::commit`](super::Store::commit).
    ///
    /// Behind each batch attributes fit names and bytes, also while other threads change the same inodes: a count of links is that of the
    /// names that came, and a file gets another size only with a change of its bytes.
    ///
    /// # Errors
    /// `EIO`, if the device failed: nothing of the batch happened, and the core stops writing.
    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn>;

    /// Reserves what a batch needs, as if none of its pages had space, and applies it: for callers that have
    /// changed nothing yet.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve) and [`apply`](Self::apply); nothing of the batch happened then.
    fn change(&self, batch: &[Change<'_>]) -> Result<Lsn> {
        let intent = Intent::of(batch);
        let intent = Intent {
            pages: intent.written + intent.allocated,
            moved: intent.ranges,
            ..intent
        };
        self.apply(&mut self.reserve(&intent)?, batch)
    }

    /// The highest inode number ever used; the core deals numbers above it.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn last_ino(&self) -> Result<Ino>;
}
