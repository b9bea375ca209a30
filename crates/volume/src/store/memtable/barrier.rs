//! The freeze barrier: a lock around the layers, one part of it on each core.
//!
//! Each core has a read-write lock with a copy of the layers. A change read-locks that of its core.
//! A commit point and the end of a checkpoint write-lock all of them in order, and update every
//! copy: that happens once a commit, while an operation passes several times.
//!
//! No thread waits for a device inside the barrier: a commit would wait for it, and all later
//! operations for the commit. A reader of the device takes a [`Snapshot`] of the layers and leaves.
//!
//! *Invariants.* While no lock is write-locked, all cores have the same layers, and `shared` equals
//! `layers`. Blocks of a snapshot's trees are reused only after `reuses` has grown. So a reader
//! that finds `reuses` unchanged since its snapshot has read those blocks as the trees had them.

use std::ops::Deref;
use std::sync::Arc;

use holdfast_sync::Padded;

use super::layers::Layers;
use crate::primitive::{
    AtomicU64, Ordering, PerCore, RwLock, RwLockReadGuard, RwLockWriteGuard, fence,
};

#[derive(Debug)]
pub(in crate::store) struct FreezeBarrier {
    cores: PerCore<RwLock<Own>>,
    /// Incremented before blocks are reused that belonged to trees in no layer any more.
    reuses: Padded<AtomicU64>,
}

/// A core's copy of the layers.
#[derive(Debug)]
pub(in crate::store) struct Own {
    layers: Layers,
    /// The same for snapshots, with a reference count a core.
    shared: Arc<Layers>,
}

impl Own {
    fn of(layers: &Layers) -> Self {
        Self {
            layers: layers.clone(),
            shared: Arc::new(layers.clone()),
        }
    }
}

impl Deref for Own {
    type Target = Layers;

    #[inline]
    fn deref(&self) -> &Layers {
        &self.layers
    }
}

/// The layers at some moment. An active memtable still changes until a checkpoint freezes it.
#[derive(Debug)]
pub(in crate::store) struct Snapshot<'g> {
    freeze_barrier: &'g FreezeBarrier,
    layers: Arc<Layers>,
    reuses: u64,
}

impl Snapshot<'_> {
    /// Was no block that was read since reused?
    pub(in crate::store) fn is_current(&self) -> bool {
        // The reads precede this load. Acquire would not keep them there; the fence does.
        fence(Ordering::SeqCst);
        self.freeze_barrier.reuses.load(Ordering::Relaxed) == self.reuses
    }
}

impl Deref for Snapshot<'_> {
    type Target = Layers;

    fn deref(&self) -> &Layers {
        &self.layers
    }
}

impl FreezeBarrier {
    pub(in crate::store) fn new(layers: &Layers) -> Self {
        Self {
            cores: PerCore::new(|| RwLock::new(Own::of(layers))),
            reuses: Padded(AtomicU64::new(0)),
        }
    }

    /// Keeps the layers unchanged while the guard lives. No device call under it. Reentrant, even
    /// while another thread waits to close.
    #[inline]
    pub(in crate::store) fn pass(&self) -> RwLockReadGuard<'_, Own> {
        self.cores.mine().read_recursive()
    }

    /// The present layers, for a reader of the device.
    pub(in crate::store) fn snapshot(&self) -> Snapshot<'_> {
        // Before the layers are read: if they had been given up by then, the count would grow
        // later. Pairs with `about_to_reuse`.
        let reuses = self.reuses.load(Ordering::SeqCst);
        let layers = Arc::clone(&self.pass().shared);
        Snapshot {
            freeze_barrier: self,
            layers,
            reuses,
        }
    }

    /// Announces the reuse of blocks that belonged to trees in no layer any more.
    pub(in crate::store) fn about_to_reuse(&self) {
        self.reuses.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until no thread is inside, and keeps others out. Deadlocks if the caller is inside.
    pub(in crate::store) fn close(&self) -> Closed<'_> {
        Closed(self.cores.iter().map(|own| own.write()).collect())
    }
}

/// Exclusive access to the layers.
#[derive(Debug)]
pub(in crate::store) struct Closed<'g>(Vec<RwLockWriteGuard<'g, Own>>);

impl Closed<'_> {
    /// Changes every core's copy.
    pub(in crate::store) fn change(&mut self, change: impl Fn(&mut Layers)) {
        self.0.iter_mut().for_each(|own| {
            change(&mut own.layers);
            own.shared = Arc::new(own.layers.clone());
        });
    }
}

impl Deref for Closed<'_> {
    type Target = Layers;

    fn deref(&self) -> &Layers {
        &self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memtable::Memtable;
    use crate::store::memtable::layers::Roots;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn a_snapshot_keeps_nobody_out_and_knows_when_blocks_may_be_used_again() {
        let freeze_barrier = FreezeBarrier::new(&Layers::over(Roots::default()));
        let snapshot = freeze_barrier.snapshot();
        let before = Arc::clone(&snapshot.active);
        let next = Arc::new(Memtable::new());
        freeze_barrier
            .close()
            .change(|layers| layers.active = Arc::clone(&next));
        assert!(Arc::ptr_eq(&snapshot.active, &before) && snapshot.is_current());
        freeze_barrier.about_to_reuse();
        assert!(!snapshot.is_current());
        let snapshot = freeze_barrier.snapshot();
        assert!(Arc::ptr_eq(&snapshot.active, &next) && snapshot.is_current());
    }

    #[test]
    fn all_threads_meet_the_same_layers() {
        let freeze_barrier = FreezeBarrier::new(&Layers::over(Roots::default()));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    for round in 0..200 {
                        if round % 20 == 0 {
                            let memtable = Arc::new(Memtable::new());
                            let mut closed = freeze_barrier.close();
                            closed.change(|layers| {
                                layers.frozen = Some(Arc::clone(&layers.active));
                                layers.active = Arc::clone(&memtable);
                            });
                            assert!(Arc::ptr_eq(&closed.active, &memtable));
                        } else {
                            // No change meanwhile.
                            let layers = freeze_barrier.pass();
                            let active = Arc::clone(&layers.active);
                            thread::yield_now();
                            assert!(Arc::ptr_eq(&layers.active, &active));
                        }
                    }
                });
            }
        });
        let closed = freeze_barrier.close();
        let same = |own: &RwLockWriteGuard<'_, Own>| {
            Arc::ptr_eq(&own.active, &closed.active)
                && Arc::ptr_eq(&own.shared.active, &closed.active)
        };
        assert!(closed.0.iter().all(same));
    }
}
