//! The pages of a file, and their one writer.

use super::unwritten::Unwritten;
use crate::account::Held;
use crate::frame::{Frames, FramesLock, Stored};
use crate::sizes::PAGE_SHIFT;
use holdfast_sync::epoch;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;

/// The cached content of one regular file.
///
/// A page is in one of four states:
///
/// - A *hole* reads as zeros and costs nothing.
/// - An *unwritten* page is allocated: it reads as zeros and counts as space, but a seek takes it
///   for a hole.
/// - A *framed* page has its bytes in memory.
/// - The owner can fill an *absent* page with its bytes, see [`PagesLock::forget`].
///
/// The size of the file is not kept here. It is an atomic of the owner, which keeps these rules:
///
/// - An absent page is [filled](PagesLock::populate) before it is read, or written in part. Readers
///   without the lock ask the owner whether there are any.
/// - The size changes **after** the pages and under the same [`PagesLock`], whether it grows or
///   shrinks. Then no read sees a byte after the size, or the bytes of one state with the size of
///   another.
/// - When a file shrinks *or is set to the size it has*, the owner calls [`PagesLock::truncate`],
///   which zeroes the rest of the last page. Bytes after the end are zero at all times, so a file
///   can grow by a change of its size alone.
/// - The owner calls [`PagesLock::clear`] before dropping, with the account that was always used,
///   or [`abandon`](Self::abandon) if that account ends too. A `Pages` that is dropped with content
///   panics, because space would leak. It does not carry a reference to its account, which would
///   make every empty file larger.
///
/// An empty one is 16 bytes without heap memory. A file that fits one page has one allocation of 64
/// to 4096 bytes. So has a page that is written far from all others, until it is written again.
#[repr(transparent)]
pub struct Pages {
    pub(super) frames: Frames<Unwritten>,
}

const _: () = assert!(size_of::<Pages>() == 16, "an empty file's pages grew");

/// The one writer of a file's pages, until it is dropped.
///
/// Readers see a change whole or not at all. A change of more than one store hides all changes from
/// them, the size included, until this is dropped. They then wait for the lock.
pub struct PagesLock<'a> {
    pub(super) frames: FramesLock<'a, Unwritten>,
}

/// The cost of an entry of an ordered map of two words: nodes are between half full and full, and
/// have headers and edges.
const ENTRY_BYTES: u64 = 32;

impl Pages {
    /// No content: every page is a hole.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames: Frames::new(),
        }
    }

    /// Locks the pages for writing.
    #[inline]
    pub fn lock(&self) -> PagesLock<'_> {
        PagesLock {
            frames: self.frames.lock(),
        }
    }

    /// Two locks for the owner's use, in space that is free here. Nothing here takes them.
    #[inline]
    pub fn beside(&self) -> &[Mutex<()>; 2] {
        self.frames.beside()
    }

    /// Are all pages holes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Pages of space: framed, unwritten or absent. `st_blocks` is eight times that. Takes no lock,
    /// so with concurrent writers the number may be a moment old.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let totals = self.frames.totals(&epoch::pin());
        totals.frames + totals.note
    }

    /// Drops everything without an account, for an owner with an account that ends too.
    pub fn abandon(&mut self) {
        self.frames.clear_mut();
    }
}

impl PagesLock<'_> {
    /// Are all pages holes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Pages of space: framed, unwritten or absent. `st_blocks` is eight times that.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.held().pages
    }

    /// Do all of these pages take space: framed, unwritten or absent?
    #[must_use]
    pub fn have_space(&self, pages: &Range<u64>) -> bool {
        self.count_in(pages) == pages.end.saturating_sub(pages.start)
    }

    /// How many pages of `pages` take space, framed or not.
    pub(super) fn count_in(&self, pages: &Range<u64>) -> u64 {
        if pages.is_empty() {
            return 0;
        }
        let unwritten = self.frames.side();
        self.frames.count(pages)
            + unwritten.map_or(0, |unwritten| unwritten.count_in(pages.clone()))
    }

    /// Pages that have a frame in memory.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.held().frames
    }

    /// Bytes of memory, tables included, without the 16 bytes of the value itself.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held().bytes
    }

    /// What the file holds, in constant time.
    pub(super) fn held(&self) -> Held {
        let totals = self.frames.totals();
        let unwritten = self.frames.side().map_or(0, |unwritten| {
            size_of::<Unwritten>() as u64 + unwritten.entries() * ENTRY_BYTES
        });
        Held {
            pages: totals.frames + totals.note,
            frames: totals.frames,
            bytes: totals.bytes + unwritten,
        }
    }

    /// Changes the pages without a frame, if there are any.
    pub(super) fn change_unframed(&mut self, change: impl FnOnce(&mut Unwritten)) {
        if self.frames.side().is_some() {
            self.frames.with_side(change, Unwritten::pages);
        }
    }

    /// A page as it is now, which may be [shared](Stored::share) and is then independent of later
    /// changes. Unfilled bytes are zero. `None`: it is a hole, unwritten or absent.
    #[must_use]
    pub fn show(&self, page: u64) -> Option<Stored<'_>> {
        self.frames.show(page)
    }

    /// Declares that the file has at least `size` bytes, so that readers of whole pages before that
    /// need not load the size. Called when the size is set, before the lock is dropped. It holds
    /// until the next [`begin`](Self::begin), which comes before the size shrinks
    /// ([`truncate`](Self::truncate) begins).
    pub fn has_size(&mut self, size: u64) {
        self.frames.inside(size >> PAGE_SHIFT);
    }

    /// Hides all changes from readers until this is dropped, so that they see all of them or none.
    /// That includes what the owner changes and reads call `size` for. For writes of several
    /// pieces; most changes of more than one page do it themselves.
    pub fn begin(&mut self) {
        self.frames.begin();
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        assert!(
            self.is_empty() || std::thread::panicking(),
            "pages dropped without giving back {} pages of space",
            self.pages(),
        );
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("pages", &self.pages())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PagesLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagesLock")
            .field("held", &self.held())
            .finish()
    }
}

#[cfg(test)]
mod tests;
