//! The session's watch: it runs each millisecond while there is work for it.
//!
//! It looks at pools without a ready thread (see [`WorkerPool::look`]), and at threads under
//! `SCHED_IDLE` (see [`super::policy`]). When there was neither for a while, it sleeps and costs
//! nothing.
//!
//! # Invariants
//! While `awake == false` there is nothing to look at, or a thread is about to call
//! [`Watch::wake`]. The watch clears `awake` first and then looks once more; other threads publish
//! their state before `wake` reads `awake` (all SeqCst).
//!
//! # Locking
//! `over` is a leaf, taken by the watch between two looks and by callers of `wake`. `pools` is
//! locked during a look, which takes `over` only when an added thread ends at once.

use super::{policy::PolicySlots, pool::WorkerPool, service::Service};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Interval between two looks.
const TICK: Duration = Duration::from_millis(1);
/// Empty looks before it sleeps.
const EMPTY_LOOKS: u32 = 20;

/// The session's watch.
#[derive(Default)]
pub(crate) struct Watch {
    /// Guards the list: all pools while the session lasts, none after, because they hold the watch.
    pools: Mutex<Vec<Arc<WorkerPool>>>,
    pub(crate) policy_slots: PolicySlots,
    awake: AtomicBool,
    /// Guards the end of the session.
    over: Mutex<bool>,
    wakeup: Condvar,
}

impl Watch {
    /// There is something to look at.
    pub(crate) fn wake(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            let _over = self.over.lock();
            self.awake.store(true, Ordering::SeqCst);
            self.wakeup.notify_one();
        }
    }

    /// Sets the pools.
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
        self.wakeup.notify_one();
    }

    /// The thread.
    pub(super) fn run(&self, service: &Arc<Service>) {
        let mut seen_nothing = 0;
        let mut over = self.over.lock();
        while !*over {
            if self.awake.load(Ordering::SeqCst) {
                self.wakeup.wait_for(&mut over, TICK);
            } else {
                self.wakeup.wait(&mut over);
                continue;
            }
            drop(over);
            seen_nothing = if self.look(service) {
                0
            } else {
                seen_nothing + 1
            };
            if seen_nothing >= EMPTY_LOOKS {
                self.awake.store(false, Ordering::SeqCst);
                if self.look(service) {
                    self.awake.store(true, Ordering::SeqCst);
                }
                seen_nothing = 0;
            }
            over = self.over.lock();
        }
    }

    /// Looks at all. Must it be repeated?
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
