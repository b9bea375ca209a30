//! The session's watch: it runs each millisecond while there is work for it.
//!
//! It looks at pools without a ready thread (see [`WorkerPool::look`]), and at threads under
//! `SCHED_IDLE` (see [`super::policy`]). When there was neither for a while, it sleeps and costs
//! nothing: see [`super::wakeup`].
//!
//! # Locking
//! `pools` is locked during a look, which takes locks of the session's end only when an added
//! thread ends at once.

use super::{pool::WorkerPool, service::Service};
use parking_lot::Mutex;
use std::sync::Arc;

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
        self.service.wakeup.run(|| {
            let pools = self.pools.lock();
            let short = pools.iter().fold(false, |short, pool| pool.look() | short);
            drop(pools);
            self.service.policy_slots.look() | short
        });
    }
}
