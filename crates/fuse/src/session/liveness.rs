//! Whether the queues of a session make progress, for a watchdog.

use super::watch::Watch;
use std::{fmt, sync::Arc};

/// Compares the queues with their state at the last call. It keeps no connection alive.
pub struct Liveness {
    watch: Arc<Watch>,
    /// Of each queue without a ready thread at the last call: how many requests it had taken.
    before: Vec<Option<u64>>,
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").finish_non_exhaustive()
    }
}

impl Liveness {
    pub(super) fn new(watch: Arc<Watch>) -> Self {
        Self {
            watch,
            before: Vec::new(),
        }
    }

    /// The name of a queue that has answered no request since the last call, while all its threads
    /// were serving. `None`: each queue has a ready thread or makes progress, or the session is
    /// over.
    ///
    /// A wait for a file lock is no sign of a stall, because a queue has one more thread for each.
    pub fn stalled(&mut self) -> Option<String> {
        let pools = self.watch.pools.lock();
        let now: Vec<_> = pools.iter().map(|pool| pool.begun_while_busy()).collect();
        let mut both = pools.iter().zip(now.iter().zip(&self.before));
        let stalled = both.find(|(_, (now, before))| now.is_some() && now == before);
        let name = stalled.map(|(pool, _)| pool.name.clone());
        self.before = now;
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{pool::tests::pool, service::tests::service};
    use parking_lot::Mutex;

    #[test]
    fn a_queue_is_stalled_if_all_its_threads_serve_the_same_requests_as_before() {
        let (pool, _) = pool(1, 1);
        let watch = Arc::new(Watch {
            service: service(),
            pools: Mutex::new(vec![pool.clone()]),
        });
        let mut liveness = Liveness::new(watch.clone());
        assert_eq!(liveness.stalled(), None, "a thread is ready");
        pool.begin();
        assert_eq!(liveness.stalled(), None, "the request is new");
        let stalled = Some(pool.name.clone());
        assert_eq!(liveness.stalled(), stalled);
        assert_eq!(liveness.stalled(), stalled);
        pool.end();
        pool.begin();
        assert_eq!(liveness.stalled(), None, "another request is being served");
        pool.end();
        assert_eq!(liveness.stalled(), None);
        pool.begin();
        assert_eq!(liveness.stalled(), None);
        watch.close();
        assert_eq!(liveness.stalled(), None, "the session is over");
    }
}
