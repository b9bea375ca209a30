//! Whether access times wait in memory for the next sync: mostly none do, and then no inode is asked.
//!
//! *Invariant.* Who notes marks the inode first; who writes takes the note back first, and then looks for marked
//! inodes. So what is marked meanwhile is met, or noted still.
//!
//! *Locking.* `writing` is held over the walk of all inodes, which hands over what it finds: it is taken with nothing
//! held. Whoever syncs beside another waits until the other's times have been handed over.

use parking_lot::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};

use crate::types::Result;

/// The note.
#[derive(Default)]
pub(crate) struct Late {
    any: AtomicBool,
    writing: Mutex<()>,
}

impl Late {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Errno;
    use std::cell::Cell;

    #[test]
    fn nobody_is_asked_unless_somebody_was_marked_since() {
        let late = Late::default();
        let walks = Cell::new(0);
        let sync = |outcome| {
            let walk = || {
                walks.set(walks.get() + 1);
                outcome
            };
            (late.write(walk), walks.get())
        };
        assert_eq!(sync(Ok(())), (Ok(()), 0));
        late.note();
        assert!(late.any());
        assert_eq!(sync(Err(Errno::EIO)), (Err(Errno::EIO), 1));
        assert!(late.any(), "not written yet");
        assert_eq!(sync(Ok(())), (Ok(()), 2));
        assert_eq!(sync(Ok(())), (Ok(()), 2));
        late.note();
        late.note();
        assert_eq!(sync(Ok(())), (Ok(()), 3));
    }
}
