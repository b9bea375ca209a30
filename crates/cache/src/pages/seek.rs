//! Finding data and holes: `SEEK_DATA` and `SEEK_HOLE` of lseek(2).
//!
//! As a read, a seek runs without the lock, and then checks that everything it saw was one state.

use super::content::{Pages, PagesLock};
use super::read::{Contended, tried};
use crate::sizes::{PAGE_END, PAGE_SHIFT};
use holdfast_sync::epoch;

impl Pages {
    /// As [`PagesLock::seek_data`], without the lock. `size` and `whole` are as for
    /// [`Pages::read_with`].
    ///
    /// # Errors
    /// [`Contended`] if changes came in between, or pages may be absent; [`PagesLock::seek_data`]
    /// works in these cases.
    pub fn seek_data(
        &self,
        offset: u64,
        size: impl Fn() -> u64,
        whole: impl Fn() -> bool,
    ) -> Result<Option<u64>, Contended> {
        let guard = epoch::pin();
        tried(|| {
            let snapshot = self.frames.snapshot(&guard)?;
            let page = snapshot.next_frame(offset >> PAGE_SHIFT);
            let size = size();
            let seen = whole().then(|| data(page, offset, size));
            (seen.is_none() || snapshot.holds()).then_some(seen.ok_or(Contended))
        })?
    }

    /// As [`PagesLock::seek_hole`], without the lock. `size` and `whole` are as for
    /// [`Pages::read_with`].
    ///
    /// # Errors
    /// [`Contended`] if changes came in between, or pages may be absent; [`PagesLock::seek_hole`]
    /// works in these cases.
    pub fn seek_hole(
        &self,
        offset: u64,
        size: impl Fn() -> u64,
        whole: impl Fn() -> bool,
    ) -> Result<Option<u64>, Contended> {
        let guard = epoch::pin();
        tried(|| {
            let snapshot = self.frames.snapshot(&guard)?;
            let page = snapshot.next_gap(offset >> PAGE_SHIFT);
            let size = size();
            let seen = whole().then(|| hole(page, offset, size));
            (seen.is_none() || snapshot.holds()).then_some(seen.ok_or(Contended))
        })?
    }
}

/// The first byte of data, if `page` is the first framed page from that of `offset` on.
fn data(page: Option<u64>, offset: u64, size: u64) -> Option<u64> {
    let data = offset.max(page? << PAGE_SHIFT);
    (offset < size && data < size).then_some(data)
}

/// The first byte of a hole, if `page` is the first page without a frame from that of `offset` on.
fn hole(page: u64, offset: u64, size: u64) -> Option<u64> {
    (offset < size).then(|| offset.max(page << PAGE_SHIFT).min(size))
}

impl PagesLock<'_> {
    /// The offset of the first byte of data at or after `offset` in a file of `size` bytes. `None`
    /// (`ENXIO`) if there is only a hole, or `offset` is at the end. Framed and absent pages are
    /// data, unwritten ones are not.
    #[must_use]
    pub fn seek_data(&self, offset: u64, size: u64) -> Option<u64> {
        let page = offset >> PAGE_SHIFT;
        let frame = self.frames.next_frame(page);
        let unloaded = self
            .next_unloaded(page..PAGE_END)
            .map(|unloaded| unloaded.start);
        let first = frame.into_iter().chain(unloaded).min();
        data(first, offset, size)
    }

    /// The offset of the first byte of a hole at or after `offset` in a file of `size` bytes, where
    /// the end counts as a hole. `None` (`ENXIO`) if `offset` is at the end.
    #[must_use]
    pub fn seek_hole(&self, offset: u64, size: u64) -> Option<u64> {
        let mut gap = self.frames.next_gap(offset >> PAGE_SHIFT);
        while let Some(unloaded) = self
            .next_unloaded(gap..PAGE_END)
            .filter(|run| run.start == gap)
        {
            gap = self.frames.next_gap(unloaded.end);
        }
        hole(gap, offset, size)
    }
}
