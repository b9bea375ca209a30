//! The lock around the layers: who works with them passes on a line of its own core.
//!
//! Each core has a lock with the layers behind it. Who works with them takes its core's, which takes no
//! exchange ([`CoreLocks`]); who changes them takes all and changes all: that happens once a commit, working with
//! them several times an operation.
//!
//! *Invariant.* Whenever no lock is held for writing, all cores have the same layers.

use std::ops::Deref;

use holdfast_sync::CoreLocks;
use holdfast_sync::core_locks::{self, Reading};

use super::layers::Layers;

/// The layers, for all cores.
#[derive(Debug)]
pub(super) struct Gate {
    cores: CoreLocks<Layers>,
}

impl Gate {
    pub(super) fn new(layers: &Layers) -> Self {
        Self {
            cores: CoreLocks::new(|_| layers.clone()),
        }
    }

    /// Keeps the layers as they are while the guard lives.
    #[inline]
    pub(super) fn pass(&self) -> Reading<'_, Layers> {
        self.cores.read()
    }

    /// Waits until nobody works with them any more, and keeps others waiting. (Never by who has passed.)
    pub(super) fn close(&self) -> Closed<'_> {
        Closed(self.cores.close())
    }
}

/// Nobody works with the layers but who has this.
#[derive(Debug)]
pub(super) struct Closed<'g>(core_locks::Closed<'g, Layers>);

impl Closed<'_> {
    /// Changes them.
    pub(super) fn change(&mut self, change: impl Fn(&mut Layers)) {
        self.0.iter_mut().for_each(change);
    }
}

impl Deref for Closed<'_> {
    type Target = Layers;

    fn deref(&self) -> &Layers {
        self.0.first()
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
        let same = |layers: &Layers| Arc::ptr_eq(&layers.active, &closed.active);
        assert!(closed.0.iter().all(same));
    }
}
