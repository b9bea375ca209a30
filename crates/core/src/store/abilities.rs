//! Abilities that a store may have beyond the contract. The core asks for an ability at the
//! operation that uses it, and takes another path if the store lacks it.

use super::{Change, Grant, InodeRecord, Lsn};
use crate::types::{Ino, Result};

/// A page of a file as it was when it was handed over, zero beyond its filled bytes. It is the page
/// cache's own memory, which neither the store nor the core changes.
pub use holdfast_cache::frame::Shared as SharedPage;

/// A page that is lent for the length of a call: to be shared, or to be compared with a shared
/// page.
pub use holdfast_cache::frame::Stored as ShownPage;

/// Lends the pages of the file that a batch writes to, by page number, with their content after the
/// batch. `None`: this page cannot be shared and has to be copied.
pub type PageOf<'p> = dyn Fn(u64) -> Option<ShownPage<'p>> + 'p;

/// A store that can iterate over all its inodes by number (XFS's `bulkstat`).
pub trait WalkInodes {
    /// Adds at most `max` inodes with numbers greater than `after`, by number. Nothing added: no
    /// inode follows.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()>;

    /// At most `parts - 1` ascending numbers that divide the inodes into about equal parts, for
    /// parallel walks. Fewer where parallel reading gains nothing.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when that cannot be read.
    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        let _ = parts;
        Ok(Vec::new())
    }
}

/// A store that is written behind, and keeps the pages of the page cache instead of copies.
pub trait SharedPages {
    /// Like [`Behind::apply`](super::Behind::apply), for a batch that writes to one file. The
    /// caller holds that file's content lock: until the call returns, the lent pages do not change.
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
