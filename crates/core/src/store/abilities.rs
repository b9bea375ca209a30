//! What a store may be able to do beyond the contract. The core asks for each ability where it would use it, and does
//! without where a store has it not.

use super::{Change, Grant, InodeRecord, Lsn};
use crate::types::{Ino, Result};

/// A page of a file as it was when it was handed over, zero behind its filled bytes: the page
/// cache's own memory, which neither of both changes.
pub use holdfast_cache::frame::Shared as SharedPage;

/// A page that is shown for the length of a call: to be shared, or to be compared with one that is.
pub use holdfast_cache::frame::Stored as ShownPage;

/// Shows the pages of the file that a batch writes to, by their numbers, as they are after it: all bytes of
/// each. `None`: this one has to be copied, as one has that cannot be shared.
pub type PageOf<'p> = dyn Fn(u64) -> Option<ShownPage<'p>> + 'p;

/// A store that can go over all its inodes in the order of their numbers (XFS's `bulkstat`).
pub trait WalkInodes {
    /// Adds at most `max` inodes with numbers greater than `after`, by number. Nothing added: the end.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()>;

    /// At most `parts - 1` ascending numbers that cut the inodes into about equal parts, for those
    /// walks in parallel; fewer where that makes no sense.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when that cannot be read.
    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        let _ = parts;
        Ok(Vec::new())
    }
}

/// A store that is written behind and would copy what is written: it can keep the pages of the page cache instead.
pub trait SharedPages {
    /// As [`Behind::apply`](super::Behind::apply), for a batch that writes to one file. Called under that file's content
    /// lock: until it returns, the pages that are shown do not change.
    ///
    /// # Errors
    /// Those of `apply`.
    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Lsn>;
}
