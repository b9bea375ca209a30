//! Bytes that a store accepted and could not keep, while it goes on
//! ([`Changes::lost`](crate::store::Changes::lost)): each file that was open then reports it once.
//!
//! *Invariant.* Losses are numbered in the order in which they were reported, under `last`. A file
//! has reported all losses up to its own number, or was opened after them.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::{Errno, Ino};

#[derive(Default)]
pub(crate) struct Losses {
    count: AtomicU64,
    /// The number of the last loss of an inode that is in memory, and its reason.
    last: Mutex<HashMap<Ino, (u64, Errno)>>,
}

impl Losses {
    /// The number of losses so far.
    pub(crate) fn count(&self) -> u64 {
        // Acquire pairs with the release in `note`: `last` is looked up after that.
        self.count.load(Ordering::Acquire)
    }

    /// Bytes of an inode, which is referenced, are lost.
    pub(crate) fn note(&self, ino: Ino, reason: Errno) {
        let mut last = self.last.lock();
        let number = self.count.load(Ordering::Relaxed) + 1;
        last.insert(ino, (number, reason));
        self.count.store(number, Ordering::Release);
    }

    /// The reason of a loss that a file of this inode has not reported. `reported` is the file's
    /// number.
    pub(crate) fn take(&self, ino: Ino, reported: &AtomicU64) -> Option<Errno> {
        let count = self.count();
        // Relaxed: any one of concurrent callers may report it.
        if reported.load(Ordering::Relaxed) >= count {
            return None;
        }
        let last = self.last.lock().get(&ino).copied();
        let until = last.map_or(count, |(number, _)| number.max(count));
        let before = reported.fetch_max(until, Ordering::Relaxed);
        last.filter(|(number, _)| *number > before)
            .map(|(_, reason)| reason)
    }

    /// An inode was evicted: no file of it is open.
    pub(crate) fn forget(&self, ino: Ino) {
        if self.count() > 0 {
            self.last.lock().remove(&ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_taken_once_by_each_file_that_was_open() {
        let (losses, ino) = (Losses::default(), Ino(7));
        let early = AtomicU64::new(losses.count());
        assert_eq!(losses.take(ino, &early), None);
        losses.note(Ino(8), Errno::ENOSPC);
        assert_eq!(losses.take(ino, &early), None, "of another inode");
        losses.note(ino, Errno::EIO);
        let late = AtomicU64::new(losses.count());
        losses.note(Ino(9), Errno::EIO);
        assert_eq!(losses.take(ino, &early), Some(Errno::EIO));
        assert_eq!(
            (losses.take(ino, &early), losses.take(ino, &late)),
            (None, None)
        );
        losses.note(ino, Errno::EDQUOT);
        for file in [&early, &late] {
            assert_eq!(losses.take(ino, file), Some(Errno::EDQUOT));
            assert_eq!(losses.take(ino, file), None);
        }
        losses.note(ino, Errno::EIO);
        losses.forget(ino);
        assert_eq!(losses.take(ino, &early), None);
        assert_eq!(losses.last.lock().len(), 2);
    }
}
