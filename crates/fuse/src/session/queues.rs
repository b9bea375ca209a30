//! Building and registering the rings of a session.

use super::{
    handler::Handler,
    pool::{StartingWorker, WorkerPool},
};
use crate::{
    mount::MountError,
    transport::uring::{Entry, Kicker, SpawnQueueWorker, queue_count},
};
use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, mpsc::channel},
};

/// Initial threads of a queue: one serves, and one is ready beside it.
const THREADS: usize = 2;

/// Rings by queue, not registered yet.
pub(super) struct Queues {
    entries: Vec<Vec<Entry>>,
}

impl Queues {
    /// Builds the rings of all processors; all or none.
    pub(super) fn build(device: &OwnedFd) -> io::Result<Self> {
        let of_queue = |qid| (0..THREADS).map(|_| Entry::new(device, qid)).collect();
        let entries = (0..queue_count()?)
            .map(of_queue)
            .collect::<io::Result<_>>()?;
        Ok(Self { entries })
    }

    /// Registers all queues, after INIT was answered. If one fails, the mount must be undone: the
    /// kernel would wait for that queue forever.
    pub(super) fn register(
        self,
        handler: &Arc<Handler>,
        device: &Arc<OwnedFd>,
        kicker: Kicker,
        threads_max: usize,
    ) -> Result<Vec<Arc<WorkerPool>>, MountError> {
        let kicker = Arc::new(kicker);
        let (report, reports) = channel();
        let mut pools = Vec::new();
        for (qid, entries) in (0..).zip(self.entries) {
            let spawn_worker = SpawnQueueWorker {
                qid,
                device: device.clone(),
                handler: handler.clone(),
                kicker: kicker.clone(),
            };
            let pool = WorkerPool::new(
                format!("queue {qid}"),
                threads_max.max(THREADS),
                Box::new(spawn_worker),
                &handler.service,
            );
            for entry in entries {
                let report = report.clone();
                let started = entry.start(
                    handler.clone(),
                    StartingWorker::new(&pool),
                    move |registered| {
                        // The receiver is the mounting thread; it may have given up.
                        let _ = report.send((qid, registered));
                    },
                );
                started.map_err(|source| MountError::Queue { qid, source })?;
            }
            pools.push(pool);
        }
        drop(report);
        for _ in 0..pools.len() * THREADS {
            let (qid, registered) = reports.recv().map_err(|_| MountError::Start {
                source: io::Error::other("a queue's thread died"),
            })?;
            registered.map_err(|source| MountError::Queue { qid, source })?;
        }
        Ok(pools)
    }
}
