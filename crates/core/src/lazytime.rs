//! Whether access times wait in memory for the next sync: mostly none do, and then no inode is asked.
//!
//! *Invariant.* Who notes marks the inode first; who writes takes the note back first, and then looks for marked
//! inodes. So what is marked meanwhile is met, or noted still.
//!
//! *Locking.* `writing` is held over the walk of all inodes, which hands over what it finds: it is taken with nothing
//! held. Whoever syncs beside another waits until the other's times have been handed over.

use crate::primitive::Ordering::{Relaxed, SeqCst};
use crate::primitive::{AtomicBool, Mutex, fence};
use crate::types::Result;

/// The note.
#[derive(Default)]
pub(crate) struct Lazytime {
    any: AtomicBool,
    writing: Mutex<()>,
}

impl Lazytime {
    /// An inode was marked.
    pub(crate) fn note(&self) {
        // Pairs with the fence below: one of both sees what the other did.
        fence(SeqCst);
        if !self.any.load(Relaxed) {
            self.any.store(true, Relaxed);
        }
    }

    /// Are perhaps inodes marked that nobody is about to write?
    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Writes them by `walk`, if there are any.
    ///
    /// # Errors
    /// Those of `walk`: then the rest is written the next time.
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
