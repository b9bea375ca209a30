//! The way to a file system, for those who have only its number or its place.
//!
//! Whoever takes the way needs the file system to stay as long as he is at it, and a count of those
//! who are would be a line that all cores write. So each core keeps a use of its own at the wayside:
//! taken by who comes, put back by who leaves, and never counted again.
//!
//! *Invariants.* A closed route holds no use: [`Route::close`] takes out what is there, and who is under
//! way then drops his instead of putting it back. So the file system ends with its last handle, or
//! with the last of those who were under way.
//!
//! *Locking.* The lock of a wayside and that of the start are leaves, and held for a few
//! instructions; nothing is dropped under them.

use holdfast_sync::PerCore;
use parking_lot::{Mutex, RwLock};
use std::ops::Deref;
use std::sync::{Arc, Weak};

/// A way to a `C` that lives as long as others want it.
pub(super) struct Route<C> {
    /// Where the first of each core begins.
    start: RwLock<Weak<C>>,
    waysides: PerCore<Mutex<Wayside<C>>>,
}

struct Wayside<C> {
    open: bool,
    kept: Option<Arc<C>>,
}

impl<C> Default for Wayside<C> {
    fn default() -> Self {
        Self {
            open: false,
            kept: None,
        }
    }
}

impl<C> Route<C> {
    /// A closed one.
    pub(super) fn new() -> Self {
        Self {
            start: RwLock::default(),
            waysides: PerCore::default(),
        }
    }

    /// From now on it leads to `core`; the caller has closed it when the one before ended.
    pub(super) fn open(&self, core: Weak<C>) {
        *self.start.write() = core;
        for wayside in self.waysides.iter() {
            wayside.lock().open = true;
        }
    }

    /// Whoever comes from now on finds nothing, and what was kept is let go.
    pub(super) fn close(&self) {
        *self.start.write() = Weak::new();
        for wayside in self.waysides.iter() {
            let kept = {
                let mut wayside = wayside.lock();
                wayside.open = false;
                wayside.kept.take()
            };
            drop(kept);
        }
    }

    /// What it leads to, if that still lives.
    #[cold]
    pub(super) fn take(&self) -> Option<Underway<'_, C>> {
        let kept = self.waysides.mine().lock().kept.take();
        let core = match kept {
            Some(core) => core,
            None => self.start.read().upgrade()?,
        };
        Some(Underway {
            route: self,
            core: Some(core),
        })
    }
}

/// A use of what a [`Route`] leads to.
pub(crate) struct Underway<'r, C> {
    route: &'r Route<C>,
    /// There until the drop takes it.
    core: Option<Arc<C>>,
}

impl<C> Deref for Underway<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        match &self.core {
            Some(core) => core,
            None => unreachable!("taken by the drop only"),
        }
    }
}

impl<C> Drop for Underway<'_, C> {
    fn drop(&mut self) {
        let left = {
            let mut wayside = self.route.waysides.mine().lock();
            if wayside.open && wayside.kept.is_none() {
                wayside.kept = self.core.take();
            }
            self.core.take()
        };
        // Perhaps the last use: its end may come this way again.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_use_is_kept_for_the_next_and_gone_when_it_is_closed() {
        let (route, core) = (Route::new(), Arc::new(7));
        assert!(route.take().is_none());
        route.open(Arc::downgrade(&core));
        for _ in 0..3 {
            assert_eq!(route.take().map(|core| *core), Some(7));
            assert_eq!(Arc::strong_count(&core), 2, "one is kept, and no more");
        }
        {
            let (_outer, inner) = (route.take(), route.take());
            assert!(inner.is_some(), "one who is under way comes again");
        }
        assert_eq!(Arc::strong_count(&core), 2);
        route.close();
        assert_eq!(Arc::strong_count(&core), 1);
        assert!(route.take().is_none());
    }

    #[test]
    fn who_is_under_way_when_it_closes_is_the_last() {
        let (route, core) = (Route::new(), Arc::new(7));
        route.open(Arc::downgrade(&core));
        let underway = route.take();
        route.close();
        let weak = Arc::downgrade(&core);
        drop(core);
        assert_eq!(underway.as_deref(), Some(&7));
        drop(underway);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn closing_beside_travellers_leaves_nothing() {
        for _ in 0..200 {
            let (route, core) = (Route::new(), Arc::new(7));
            route.open(Arc::downgrade(&core));
            let weak = Arc::downgrade(&core);
            thread::scope(|scope| {
                let travel = || while route.take().is_some_and(|core| *core == 7) {};
                let travellers = [(); 3].map(|()| scope.spawn(travel));
                route.close();
                drop(core);
                // The thread sanitizer sees a join, and not the end of a scope.
                for traveller in travellers {
                    traveller.join().unwrap();
                }
            });
            assert!(weak.upgrade().is_none());
        }
    }
}
