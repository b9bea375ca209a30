//! The session's watch: it runs each millisecond while there is work for it.
//!
//! It looks at pools without a ready thread (see [`WorkerPool::look`]), and at threads under
//! `SCHED_IDLE` (see [`super::policy`]). When there was neither for a while, it sleeps and costs
//! nothing.
//!
//! # Invariants
//! While `awake == false` there is nothing to look at, or a thread is about to call
//! [`Wakeup::wake`](super::wakeup::Wakeup::wake). The watch clears `awake` first and then looks
//! once more; other threads publish their state before `wake` reads `awake` (all SeqCst).
//!
//! # Locking
//! `pools` is locked during a look, which takes the lock of the session's end only when an added
//! thread ends at once.

use super::{pool::WorkerPool, service::Service};
use parking_lot::Mutex;
use std::sync::{Arc, atomic::Ordering};

/// Empty looks before it sleeps.
const EMPTY_LOOKS: u32 = 20;

/// The session's watch.
pub(super) struct Watch {
    pub(super) service: Arc<Service>,
    /// Guards the list: all pools while the session lasts, none after, because they hold the
    /// connection.
    pub(super) pools: Mutex<Vec<Arc<WorkerPool>>>,
}

impl Watch {
    /// How many threads serve.
    pub(super) fn threads(&self) -> usize {
        self.pools.lock().iter().map(|pool| pool.threads()).sum()
    }

    /// The session is over.
    pub(super) fn close(&self) {
        self.pools.lock().clear();
        self.service.wakeup.close();
    }

    /// The thread.
    pub(super) fn run(&self) {
        let wakeup = &self.service.wakeup;
        let mut seen_nothing = 0;
        while wakeup.wait() {
            seen_nothing = if self.look() { 0 } else { seen_nothing + 1 };
            if seen_nothing >= EMPTY_LOOKS {
                wakeup.awake.store(false, Ordering::SeqCst);
                if self.look() {
                    wakeup.awake.store(true, Ordering::SeqCst);
                }
                seen_nothing = 0;
            }
        }
    }

    /// Looks at all. Must it be repeated?
    fn look(&self) -> bool {
        let pools = self.pools.lock();
        let short = pools.iter().fold(false, |short, pool| pool.look() | short);
        drop(pools);
        self.service.policy_slots.look() | short
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
        let watch = Arc::new(Watch {
            service: service.clone(),
            pools: Mutex::default(),
        });
        let owner = watch.clone();
        let thread = thread::spawn(move || owner.run());
        for _ in 0..3 {
            service.wakeup.wake();
            assert!(service.wakeup.awake.load(Ordering::SeqCst));
            while service.wakeup.awake.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        watch.close();
        thread.join().unwrap();
    }
}
