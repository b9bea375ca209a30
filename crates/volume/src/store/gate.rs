//! The lock around the layers: who works with them passes on a line of its own core.
//!
//! Each core has a lock with the layers behind it. Who works with them takes its core's; who changes them
//! takes all, in order, and changes all: that happens once a commit, working with them several times an
//! operation.
//!
//! *Invariant.* Whenever no lock is held for writing, all cores have the same layers.

use std::ops::Deref;

use holdfast_sync::PerCore;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::layers::Layers;

/// The layers, for all cores.
#[derive(Debug)]
pub(super) struct Gate {
    cores: PerCore<RwLock<Layers>>,
}

impl Gate {
    pub(super) fn new(layers: &Layers) -> Self {
        Self {
            cores: PerCore::new(|| RwLock::new(layers.clone())),
        }
    }

    /// Keeps the layers as they are while the guard lives. (Never twice at once in one thread.)
    #[inline]
    pub(super) fn pass(&self) -> RwLockReadGuard<'_, Layers> {
        self.cores.mine().read()
    }

    /// Waits until nobody works with them any more, and keeps others waiting.
    pub(super) fn close(&self) -> Closed<'_> {
        Closed(self.cores.iter().map(RwLock::write).collect())
    }
}

/// Nobody works with the layers but who has this.
#[derive(Debug)]
pub(super) struct Closed<'g>(Vec<RwLockWriteGuard<'g, Layers>>);

impl Closed<'_> {
    /// Changes them.
    pub(super) fn change(&mut self, change: impl Fn(&mut Layers)) {
        for layers in &mut self.0 {
            change(layers);
        }
    }
}

impl Deref for Closed<'_> {
    type Target = Layers;

    fn deref(&self) -> &Layers {
        // There is a core, or nobody could be here.
        &self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::layers::Roots;
    use crate::store::overlay::Overlay;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn all_threads_meet_the_same_layers() {
        let gate = Gate::new(&Layers::over(Roots::default()));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    for round in 0..200 {
                        if round % 20 == 0 {
                            let overlay = Arc::new(Overlay::new());
                            let mut closed = gate.close();
                            closed.change(|layers| {
                                layers.frozen = Some(Arc::clone(&layers.active));
                                layers.active = Arc::clone(&overlay);
                            });
                            assert!(Arc::ptr_eq(&closed.active, &overlay));
                        } else {
                            // Nobody changes them meanwhile.
                            let layers = gate.pass();
                            let active = Arc::clone(&layers.active);
                            thread::yield_now();
                            assert!(Arc::ptr_eq(&layers.active, &active));
                        }
                    }
                });
            }
        });
        let closed = gate.close();
        let same =
            |layers: &RwLockWriteGuard<'_, Layers>| Arc::ptr_eq(&layers.active, &closed.active);
        assert!(closed.0.iter().all(same));
    }
}
