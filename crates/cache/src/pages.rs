//! The cached content of one regular file, read without locks.
//!
//! *Invariants.* Bytes that a reader can meet never change: a frame is immutable up to its filled
//! bytes (see [`frame`](crate::frame)), and what is written over is written into a new frame. No
//! page is both framed and unwritten or absent. Every read sees the bytes *and the size* of one moment, if
//! the owner keeps this rule: **the size changes after the pages, under the same [`PagesLock`]**.
//!
//! *Locking.* Writers take [`Pages::lock`]; readers none, unless they are [`Contended`].

use crate::account::Held;
use crate::frame::{Frames, FramesLock, Stored};
use crate::group::PAGE_SHIFT;
use holdfast_sync::epoch;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;

mod absent;
mod change;
mod copy;
mod fallocate;
mod flight;
mod heat;
mod pieces;
mod read;
mod seek;
#[cfg(test)]
mod tests;
mod unwritten;
mod write;

pub use flight::{Flight, Missing};
pub use heat::Unused;
pub use pieces::{Piece, Pieces};
pub use read::Contended;
use unwritten::Unwritten;

/// The cached content of one regular file.
///
/// A page is a hole (reads zero, costs nothing), unwritten (allocated: reads zero, counts as
/// space, but seeks take it for a hole), framed (has bytes in memory) or absent (its bytes are where
/// the owner can bring them from, see [`PagesLock::forget`]). The size of the file is
/// not kept here; it must be an atomic of the owner, who must see to this:
///
/// - Nobody reads an absent page, or writes a part of one, before it was [brought](PagesLock::populate);
///   readers without the lock ask the owner whether there are any.
/// - The size changes **after** the pages and under the same [`PagesLock`], in either direction.
///   Then no read sees a byte behind the size, or the bytes of one state with the size of another.
/// - When a file shrinks *or is set to the size it has*, call [`PagesLock::truncate`], which
///   zeroes the rest of the last page: bytes behind the end are zero at all times, so that a
///   file can grow by merely changing its size.
/// - Call [`PagesLock::clear`] before dropping, with the account that was always used, or
///   [`abandon`](Self::abandon) if that account is going away as well. A `Pages` that is dropped
///   while it holds anything panics, because space would be lost silently; it does not carry a
///   reference to its account, since that would make every empty file larger.
///
/// An empty one is 16 bytes and has no heap; a file that fits one page has one allocation of 64 to
/// 4096 bytes, and so has a page that is written far from all others, as long as that is not written on.
#[repr(transparent)]
pub struct Pages {
    frames: Frames<Unwritten>,
}

const _: () = assert!(size_of::<Pages>() == 16, "an empty file's pages grew");

/// The one writer of a file's pages, until it is dropped.
///
/// Readers see a change whole or not at all. One that takes more than a single store keeps them
/// from seeing anything until this is dropped, the size included; they then wait for the lock.
pub struct PagesLock<'a> {
    frames: FramesLock<'a, Unwritten>,
}

/// Bytes of a page.
pub const PAGE_SIZE: usize = crate::frame::FRAME_SIZE;

/// Largest size of a file, hence one more than the offset of the last byte: `i64::MAX`.
pub const MAX_SIZE: u64 = i64::MAX.cast_unsigned();

/// One more than the number of the last page that a file can have.
const PAGE_END: u64 = (MAX_SIZE >> PAGE_SHIFT) + 1;

/// What an entry of an ordered map of two words costs: nodes are half to wholly full, and have
/// headers and edges besides.
const ENTRY_BYTES: u64 = 32;

impl Pages {
    /// No content: every page is a hole.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames: Frames::new(),
        }
    }

    /// Becomes the one writer; waits until there is no other.
    #[inline]
    pub fn lock(&self) -> PagesLock<'_> {
        PagesLock {
            frames: self.frames.lock(),
        }
    }

    /// Two locks that are the owner's to use, for which there is room. They have no part in anything
    /// here.
    #[inline]
    pub fn beside(&self) -> &[Mutex<()>; 2] {
        self.frames.beside()
    }

    /// Are all pages holes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Pages of space held, framed, unwritten or absent; `st_blocks` is eight times that. Takes no lock:
    /// with writers about, it may be a moment old.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let totals = self.frames.totals(&epoch::pin());
        totals.frames + totals.note
    }

    /// Drops everything without an account, for an owner whose account ends with it.
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

    /// Pages of space held, framed, unwritten or absent; `st_blocks` is eight times that.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.held().pages
    }

    /// Do all of these pages take space: framed, unwritten or absent?
    #[must_use]
    pub fn have_space(&self, pages: &Range<u64>) -> bool {
        self.count_in(pages) == pages.end.saturating_sub(pages.start)
    }

    /// Pages that have a frame in memory.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.held().frames
    }

    /// Bytes of memory held, tables included, the 16 bytes of the value itself not.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held().bytes
    }

    /// What is held, in constant time.
    fn held(&self) -> Held {
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

    /// A page as it is now, which may be [shared](Stored::share) whatever becomes of it here: what is not
    /// filled is zero. `None`: it is a hole, unwritten or absent.
    #[must_use]
    pub fn show(&self, page: u64) -> Option<Stored<'_>> {
        self.frames.show(page)
    }

    /// Says that the file has `size` bytes at least, which readers of pages before that need not ask
    /// for any more. To be called when the size is there already, before the lock is dropped; it
    /// holds until the next [`begin`](Self::begin), which comes before the size shrinks
    /// ([`truncate`](Self::truncate) begins).
    pub fn has_size(&mut self, size: u64) {
        self.frames.inside(size >> PAGE_SHIFT);
    }

    /// Hides every change from readers until this is dropped, so that they see all of them
    /// or none; with them what the owner changes and reads call `size` for. For writes of several
    /// pieces; most changes of more than one page do it by themselves.
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
