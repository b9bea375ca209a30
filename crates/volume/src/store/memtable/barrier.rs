//! The lock around the layers: who works with them passes on a line of its own core.
//!
//! Each core has a lock with the layers behind it. A change locks its core's for reading; a commit's cut and the end of a
//! checkpoint lock all of them for writing, in their order, and change all: that happens once a commit, passing several
//! times an operation.
//!
//! No thread waits for a device while it has passed, or a commit would wait for that device call, and all that come
//! after it would wait for the commit. Whatever reads the device takes a [`Snapshot`] of the layers and leaves.
//!
//! *Invariants.* Whenever no lock is held for writing, all cores have the same layers, and `shared` is those. Blocks
//! that a snapshot's trees use are used again only after `reuses` has grown: a reader that finds `reuses` as it was
//! when the snapshot was taken has read those blocks as the trees had them.

use std::ops::Deref;
use std::sync::Arc;

use holdfast_sync::Padded;

use super::layers::Layers;
use crate::primitive::{
    AtomicU64, Ordering, PerCore, RwLock, RwLockReadGuard, RwLockWriteGuard, fence,
};

/// The layers, for all cores.
#[derive(Debug)]
pub(in crate::store) struct FreezeBarrier {
    cores: PerCore<RwLock<Own>>,
    /// How often blocks of trees that are in no layer any more were about to be given back.
    reuses: Padded<AtomicU64>,
}

/// What a core has of the layers.
#[derive(Debug)]
pub(in crate::store) struct Own {
    layers: Layers,
    /// The same, for snapshots: each core has a count of its own.
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

/// The layers as they were at some moment. Those that change are the same as ever until a checkpoint freezes them.
#[derive(Debug)]
pub(in crate::store) struct Snapshot<'g> {
    freeze_barrier: &'g FreezeBarrier,
    layers: Arc<Layers>,
    reuses: u64,
}

impl Snapshot<'_> {
    /// Can no block that was read since have been used for something else?
    pub(in crate::store) fn is_current(&self) -> bool {
        // The reads come before this load. Acquire would not keep them there; the fence does.
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

    /// Keeps the layers as they are while the guard lives. Never over a device call. A thread that has passed may pass
    /// again, even while another one waits to close.
    #[inline]
    pub(in crate::store) fn pass(&self) -> RwLockReadGuard<'_, Own> {
        self.cores.mine().read_recursive()
    }

    /// The layers as they are now, for readers of the device.
    pub(in crate::store) fn snapshot(&self) -> Snapshot<'_> {
        // Before the layers: had these been given up by then, the count would have grown later. Pairs with
        // `about_to_reuse`.
        let reuses = self.reuses.load(Ordering::SeqCst);
        let layers = Arc::clone(&self.pass().shared);
        Snapshot {
            freeze_barrier: self,
            layers,
            reuses,
        }
    }

    /// Says that blocks will be used again which trees had that are in no layer any more.
    pub(in crate::store) fn about_to_reuse(&self) {
        self.reuses.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until no thread works with them any more, and keeps others waiting. A thread that has passed would wait for
    /// itself.
    pub(in crate::store) fn close(&self) -> Closed<'_> {
        Closed(self.cores.iter().map(|own| own.write()).collect())
    }
}

/// Nobody works with the layers but who has this.
#[derive(Debug)]
pub(in crate::store) struct Closed<'g>(Vec<RwLockWriteGuard<'g, Own>>);

impl Closed<'_> {
    /// Changes them.
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
                            // Nobody changes them meanwhile.
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
