//! The rename lock: it protects the parent of every directory, as Linux's `s_vfs_rename_mutex`.
//!
//! A rename between two directories needs constant ancestry to order their locks. Only a rename
//! that moves a directory changes it. So the lock is a read-write lock per core: a rename of a file
//! takes its own core's for reading, and a rename of a directory takes all for writing.
//!
//! *Locking.* Outermost; a writer takes the locks in the order of the cores.

use holdfast_sync::PerCore;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock.
#[derive(Default)]
pub(crate) struct RenameLock(PerCore<RwLock<()>>);

/// A hold: no other thread changes a parent, and with `Change` no other thread holds the lock.
pub(crate) enum Held<'s> {
    Still(#[expect(dead_code, reason = "held")] RwLockReadGuard<'s, ()>),
    Change(#[expect(dead_code, reason = "held")] Vec<RwLockWriteGuard<'s, ()>>),
}

impl RenameLock {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Waits for a writer, and keeps parents constant.
    pub(crate) fn still(&self) -> Held<'_> {
        Held::Still(self.0.mine().read())
    }

    /// Waits for all holders.
    pub(crate) fn change(&self) -> Held<'_> {
        Held::Change(self.0.iter().map(RwLock::write).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn it_stands_still_for_many_and_changes_for_one() {
        let rename_lock = RenameLock::new();
        let changing = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _held = rename_lock.still();
                        assert!(!changing.load(Ordering::Relaxed));
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _held = rename_lock.change();
                        assert!(!changing.swap(true, Ordering::Relaxed));
                        changing.store(false, Ordering::Relaxed);
                    }
                });
            }
        });
    }

    #[test]
    fn who_wants_it_still_does_not_wait_for_others_who_do() {
        let rename_lock = RenameLock::new();
        let held = rename_lock.still();
        thread::scope(|scope| {
            let other = scope.spawn(|| drop(rename_lock.still()));
            assert!(other.join().is_ok());
        });
        drop(held);
    }
}
