//! The session's watch: looks each millisecond, while there is something to look at.
//!
//! It looks at crews that have nobody ready (see [`WorkerPool::look`]), and at threads that run under the idle
//! policy (see [`super::policy`]). When there was neither for a while it sleeps, and costs nothing.
//!
//! # Invariants
//! While `awake` is false there is nothing to look at, or somebody is about to call [`Watch::wake`]:
//! the watch takes `awake` back first and looks once more after that, and what is to be looked at is
//! published before `wake` reads `awake` (all SeqCst).
//!
//! # Locking
//! `over` is a leaf, taken by the watch between two looks and by callers that wake it. `pools` is held
//! during a look, which takes `over` only when a thread that was added ends at once.

use super::{policy::PolicySlots, pool::WorkerPool, service::Service};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// From one look to the next.
const TICK: Duration = Duration::from_millis(1);
/// Looks without anything to see before it sleeps.
const PATIENCE: u32 = 20;

/// The session's watch.
#[derive(Default)]
pub(crate) struct Watch {
    /// Guards the list: all crews while the session lasts, none after, because they hold the watch.
    pools: Mutex<Vec<Arc<WorkerPool>>>,
    pub(crate) policy_slots: PolicySlots,
    awake: AtomicBool,
    /// Guards the word that the session is over.
    over: Mutex<bool>,
    bell: Condvar,
}

impl Watch {
    /// There is something to look at.
    pub(crate) fn wake(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            let _over = self.over.lock();
            self.awake.store(true, Ordering::SeqCst);
            self.bell.notify_one();
        }
    }

    /// Looks after these from now on.
    pub(super) fn look_after(&self, pools: Vec<Arc<WorkerPool>>) {
        *self.pools.lock() = pools;
    }

    /// How many threads serve.
    pub(super) fn threads(&self) -> usize {
        self.pools.lock().iter().map(|pool| pool.threads()).sum()
    }

    /// The session is over.
    pub(super) fn close(&self) {
        self.pools.lock().clear();
        *self.over.lock() = true;
        self.bell.notify_one();
    }

    /// The thread.
    pub(super) fn run(&self, service: &Arc<Service>) {
        let mut seen_nothing = 0;
        let mut over = self.over.lock();
        while !*over {
            if self.awake.load(Ordering::SeqCst) {
                self.bell.wait_for(&mut over, TICK);
            } else {
                self.bell.wait(&mut over);
                continue;
            }
            drop(over);
            seen_nothing = if self.look(service) {
                0
            } else {
                seen_nothing + 1
            };
            if seen_nothing >= PATIENCE {
                self.awake.store(false, Ordering::SeqCst);
                if self.look(service) {
                    self.awake.store(true, Ordering::SeqCst);
                }
                seen_nothing = 0;
            }
            over = self.over.lock();
        }
    }

    /// Is there something to look at again?
    fn look(&self, service: &Arc<Service>) -> bool {
        let pools = self.pools.lock();
        let short = pools
            .iter()
            .fold(false, |short, pool| pool.look(service) | short);
        drop(pools);
        self.policy_slots.look() | short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::service::tests::service;
    use std::thread;

    #[test]
    fn the_watch_falls_asleep_and_can_be_woken_and_ended_in_either_state() {
        let service = service();
        let owner = service.clone();
        let thread = thread::spawn(move || owner.watch.run(&owner));
        for _ in 0..3 {
            service.watch.wake();
            assert!(service.watch.awake.load(Ordering::SeqCst));
            while service.watch.awake.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        service.watch.close();
        thread.join().unwrap();
    }
}
