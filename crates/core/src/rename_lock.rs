//! The shape of the tree: every directory's parent.
//!
//! Renames between two directories want it to stand still, so that it is clear which of the two is above
//! the other. Only a rename that moves a directory changes it. So the lock is one for each core: who moves
//! a file takes that of his own core, which nobody else writes, and who moves a directory takes all.
//!
//! *Locking.* Before everything else; whoever takes all takes them in one order.

use holdfast_sync::PerCore;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock of the shape.
#[derive(Default)]
pub(crate) struct RenameLock(PerCore<RwLock<()>>);

/// As long as it lives nobody else changes the shape; and nobody but who has it, if it is for change.
pub(crate) enum Held<'s> {
    Still(#[expect(dead_code, reason = "held")] RwLockReadGuard<'s, ()>),
    Change(#[expect(dead_code, reason = "held")] Vec<RwLockWriteGuard<'s, ()>>),
}

impl Held<'_> {
    /// May its holder change the shape?
    pub(crate) fn is_for_change(&self) -> bool {
        matches!(self, Self::Change(_))
    }
}

impl RenameLock {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Waits until nobody changes the shape, and keeps it as it is.
    pub(crate) fn still(&self) -> Held<'_> {
        Held::Still(self.0.mine().read())
    }

    /// Waits until nobody wants the shape to stand still.
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
                        let held = rename_lock.still();
                        assert!(!held.is_for_change());
                        assert!(!changing.load(Ordering::Relaxed));
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let held = rename_lock.change();
                        assert!(held.is_for_change());
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
