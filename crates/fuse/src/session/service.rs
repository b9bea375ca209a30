//! What all threads of a session share: the handler, the workers, the counters.

use super::{
    counters::{Counters, Registry},
    handler::{Crew, Handler, Outcome, Place},
    workers::{Job, Workers},
};
use crate::transport::{frame::Frame, uring::Mailbox};
use holdfast_types::{Errno, Result};
use parking_lot::Mutex;
use std::{
    cell::OnceCell,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// Frames kept for the next request that goes to a worker.
const SPARE_MAX: usize = 16;

thread_local! {
    /// A worker serves one session all its life.
    static WORKER_COUNTERS: OnceCell<Arc<Counters>> = const { OnceCell::new() };
}

/// What all threads of a session share.
pub(crate) struct Service {
    pub(crate) handler: Handler,
    pub(crate) registry: Arc<Registry>,
    pub(crate) payload_max: usize,
    blocking: Workers,
    locks: Workers,
    /// Guards frames that nobody uses.
    spare: Mutex<Vec<Frame>>,
    /// Threads to wake at the end.
    pub(super) mailboxes: Arc<OnceLock<Vec<Arc<Mailbox>>>>,
    over: AtomicBool,
}

impl Service {
    pub(super) fn new(
        handler: Handler,
        payload_max: usize,
        workers: usize,
        lock_waiters: usize,
    ) -> Self {
        Self {
            registry: handler.revocation.registry.clone(),
            mailboxes: handler.revocation.mailboxes.clone(),
            handler,
            payload_max,
            blocking: Workers::new("holdfast-io", workers),
            locks: Workers::new("holdfast-lock", lock_waiters),
            spare: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// A frame nobody uses.
    pub(crate) fn frame(&self) -> io::Result<Frame> {
        let spare = self.spare.lock().pop();
        spare.map_or_else(|| Frame::new(self.payload_max), Ok)
    }

    /// Gives a frame back.
    pub(crate) fn give_back(&self, frame: Frame) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_MAX {
            spare.push(frame);
        }
    }

    /// Brings the request in `frame` to a worker; `finish` is called with the reply there, or
    /// here when no worker takes it.
    pub(crate) fn defer(
        self: &Arc<Self>,
        crew: Crew,
        mut frame: Frame,
        finish: impl FnOnce(Frame, Option<Result<usize>>) + Send + 'static,
    ) {
        let service = self.clone();
        let job: Job = Box::new(move |taken| {
            let counters = taken.then(|| service.worker_counters());
            let outcome = match &counters {
                Some(counters) => {
                    counters.begin();
                    service.handler.serve(&mut frame, counters, Place::Worker)
                }
                None => Outcome::Reply(Err(Errno::ENOLCK)),
            };
            match outcome {
                Outcome::Reply(result) => finish(frame, Some(result)),
                Outcome::Silent => finish(frame, None),
                Outcome::Defer(_) => finish(frame, Some(Err(Errno::EIO))),
            }
            if let Some(counters) = counters {
                counters.end();
            }
        });
        let refused = match crew {
            Crew::Blocking => self.blocking.queue(job),
            Crew::Locks => self.locks.run_now(job),
        };
        if let Err(job) = refused {
            job(false);
        }
    }

    fn worker_counters(&self) -> Arc<Counters> {
        WORKER_COUNTERS.with(|cell| cell.get_or_init(|| self.registry.enlist()).clone())
    }

    /// The connection is gone: those who wait stop waiting.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.handler.interrupts.close();
        self.mailboxes
            .get()
            .into_iter()
            .flatten()
            .for_each(|mailbox| mailbox.wake());
    }

    /// Is the connection gone?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits for all workers.
    pub(super) fn close(&self) {
        self.end();
        self.blocking.close();
        self.locks.close();
    }
}
