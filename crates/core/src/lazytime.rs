//! Whether access times wait in memory for the next sync. Mostly none do, and then no walk is made.
//!
//! *Invariant.* A thread that sets `any` has marked the inode before; a thread that writes clears
//! `any` before it looks for marked inodes. So an inode marked meanwhile is found, or `any` is
//! still set.
//!
//! *Locking.* `writing` is the outermost lock: it is held over the walk of all inodes, which writes
//! their times. A concurrent sync waits until these times have been submitted.

use crate::primitive::Ordering::{Relaxed, SeqCst};
use crate::primitive::{AtomicBool, Mutex, fence};
use crate::types::Result;

/// The flag, and the lock of its writer, which no operation but a sync takes: on a line of their
/// own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Lazytime {
    any: AtomicBool,
    writing: Mutex<()>,
}

impl Lazytime {
    /// Notes that an inode was marked.
    pub(crate) fn note(&self) {
        // Pairs with the fence in `write`: either the walk finds the inode, or this load sees `any`
        // clear.
        fence(SeqCst);
        if !self.any.load(Relaxed) {
            self.any.store(true, Relaxed);
        }
    }

    /// May there be marked inodes that no thread is about to write?
    #[cfg(test)]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Writes the times by `walk`, if there are any.
    ///
    /// # Errors
    /// Those of `walk`; the remaining times are written the next time.
    pub(crate) fn write(&self, walk: impl FnOnce() -> Result<()>) -> Result<()> {
        let _writing = self.writing.lock();
        if !self.any.load(Relaxed) {
            return Ok(());
        }
        self.any.store(false, Relaxed);
        fence(SeqCst);
        let written = walk();
        if written.is_err() {
            self.any.store(true, Relaxed);
        }
        written
    }
}
