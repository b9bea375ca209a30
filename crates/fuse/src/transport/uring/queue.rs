//! One thread of a processor's queue, with an entry of its own.

use super::{
    kick::Kicker,
    sys::{Event, Ring},
};
use crate::{
    session::{
        handler::{Handler, Outcome},
        pool::{SpawnWorker, StartingWorker},
        service::ServingGuard,
        worker::{Worker, pin},
    },
    transport::{frame::Frame, mark_serving},
};
use holdfast_types::Errno;
use std::{io, os::fd::OwnedFd, sync::Arc, thread};

/// The ring of a thread to be started.
pub(crate) struct Entry {
    qid: u16,
    ring: Ring,
}

impl Entry {
    /// A ring for one entry of queue `qid`.
    pub(crate) fn new(device: &OwnedFd, qid: u16) -> io::Result<Self> {
        let ring = Ring::new(device, qid)?;
        Ok(Self { qid, ring })
    }

    /// Starts the thread. It registers the entry, reports the result, and serves until the
    /// connection ends.
    pub(crate) fn start(
        mut self,
        handler: Arc<Handler>,
        starting: StartingWorker,
        registered: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> io::Result<()> {
        let frame = Frame::new(handler.service.payload_max)?;
        let serving_guard = ServingGuard::new(&handler.service);
        thread::Builder::new()
            .name(format!("holdfast-cpu{}", self.qid))
            .spawn(move || {
                mark_serving();
                pin(self.qid);
                let first = match self.register(frame) {
                    Ok(first) => first,
                    Err(error) => return registered(Err(error)),
                };
                starting.pool.join();
                let mut server = Server {
                    ring: self.ring,
                    handler,
                    worker: Worker::new(starting.pool.clone(), Some(self.qid)),
                };
                drop(starting);
                registered(Ok(()));
                // Named last, so it is dropped last.
                let service = &serving_guard.service;
                match server.serve(first) {
                    Ok(()) => service.end(),
                    Err(error) => service.fail(format_args!("queue {}: {error}", self.qid)),
                }
            })?;
        Ok(())
    }

    /// Offers the frame to the kernel, and returns an error if it is refused. Returns a request
    /// that has already arrived.
    fn register(&mut self, frame: Frame) -> io::Result<Option<Frame>> {
        self.ring.register(frame)?;
        self.ring.submit()?;
        // A refusal completes at once.
        match self.ring.next() {
            Some(Event::Lost(error)) => Err(error),
            Some(Event::Request(frame)) => Ok(Some(frame)),
            None => Ok(None),
        }
    }
}

/// Starts further threads of a queue.
pub(crate) struct SpawnQueueWorker {
    pub(crate) qid: u16,
    pub(crate) device: Arc<OwnedFd>,
    pub(crate) handler: Arc<Handler>,
    pub(crate) kicker: Arc<Kicker>,
}

impl SpawnWorker for SpawnQueueWorker {
    fn spawn_worker(&self, starting: StartingWorker) -> io::Result<()> {
        let entry = Entry::new(&self.device, self.qid)?;
        let (qid, kicker) = (self.qid, self.kicker.clone());
        let service = starting.pool.service.clone();
        entry.start(
            self.handler.clone(),
            starting,
            move |registered| match registered {
                Ok(()) => {
                    if let Err(error) = kicker.kick(qid) {
                        service.fail(format_args!("no process looks after queue {qid}: {error}"));
                    }
                }
                Err(error) if is_end(&error) => service.end(),
                Err(error) => service.fail(format_args!("a further entry of queue {qid}: {error}")),
            },
        )
    }
}

struct Server {
    ring: Ring,
    handler: Arc<Handler>,
    worker: Worker,
}

impl Server {
    fn serve(&mut self, mut first: Option<Frame>) -> io::Result<()> {
        loop {
            let mut frame = match first
                .take()
                .map(Event::Request)
                .or_else(|| self.ring.next())
            {
                Some(Event::Request(frame)) => frame,
                Some(Event::Lost(error)) if is_end(&error) => return Ok(()),
                Some(Event::Lost(error)) => return Err(error),
                None => {
                    self.worker.before_wait();
                    self.ring.wait()?;
                    continue;
                }
            };
            self.worker.begin();
            let accepted = frame.accept_split();
            let outcome = self.handler.serve(&mut frame, accepted, &mut self.worker);
            let result = match outcome {
                Outcome::Reply(result) => result,
                // No request without an answer arrives here; if one did, the frame would be
                // committed even so.
                Outcome::Silent => Err(Errno::EIO),
            };
            let commit_id = frame.ring_reply(result);
            self.worker.before_reply();
            self.ring.commit(frame, commit_id)?;
            self.ring.submit()?;
            self.worker.end();
        }
    }
}

/// Does the error say that the connection has ended?
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOTCONN | libc::ENODEV | libc::ECANCELED | libc::ECONNABORTED)
    )
}
