//! All rings of a session on their way into being.

use super::{
    pool::{StartingWorker, WorkerPool},
    service::Service,
};
use crate::{
    mount::MountError,
    transport::uring::{Entry, Nudger, Report, SpawnQueueWorker, queue_count},
};
use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, mpsc::channel},
};

/// Threads of a queue at the start: one that serves, and one that stands ready beside it.
const THREADS: usize = 2;

/// Rings by queue, waiting for the word to register them.
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

    /// Registers all queues, after INIT was answered. If one fails, the mount must go: the
    /// kernel would wait for it for ever.
    pub(super) fn register(
        self,
        service: &Arc<Service>,
        device: &Arc<OwnedFd>,
        nudger: Nudger,
        threads_max: usize,
    ) -> Result<Vec<Arc<WorkerPool>>, MountError> {
        let nudger = Arc::new(nudger);
        let (report, reports) = channel();
        let mut pools = Vec::new();
        for (qid, entries) in (0..).zip(self.entries) {
            let spawn_worker = SpawnQueueWorker {
                qid,
                device: device.clone(),
                nudger: nudger.clone(),
            };
            let pool = WorkerPool::new(
                format!("queue {qid}"),
                threads_max.max(THREADS),
                Box::new(spawn_worker),
                service.watch.clone(),
            );
            for entry in entries {
                let report: Report = report.clone();
                let started = entry.start(service, StartingWorker::new(&pool), move |registered| {
                    // At the other end is whoever mounts, who waits for it or has given up.
                    let _ = report.send((qid, registered));
                });
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
