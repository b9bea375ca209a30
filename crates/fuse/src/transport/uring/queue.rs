//! One thread of a processor's queue, with an entry of its own.

use super::{
    kick::Kicker,
    sys::{Event, Ring},
};
use crate::{
    session::{
        handler::Outcome,
        pool::{SpawnWorker, StartingWorker},
        service::{Service, ServingGuard},
        worker::{Worker, pin},
    },
    transport::{frame::Frame, mark_serving},
};
use holdfast_types::Errno;
use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, mpsc::Sender},
    thread,
};

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
        self,
        service: &Arc<Service>,
        starting: StartingWorker,
        registered: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> io::Result<()> {
        let frame = Frame::new(service.payload_max)?;
        let serving_guard = ServingGuard::new(service);
        thread::Builder::new()
            .name(format!("holdfast-cpu{}", self.qid))
            .spawn(move || self.run(frame, &serving_guard.service, starting, registered))?;
        Ok(())
    }

    fn run(
        mut self,
        frame: Frame,
        service: &Arc<Service>,
        starting: StartingWorker,
        registered: impl FnOnce(io::Result<()>),
    ) {
        mark_serving();
        pin(self.qid);
        let first = match self.register(frame) {
            Ok(first) => first,
            Err(error) => return registered(Err(error)),
        };
        starting.pool.join();
        let mut server = Server {
            ring: self.ring,
            worker: Worker::new(service.clone(), starting.pool.clone(), Some(self.qid)),
        };
        drop(starting);
        registered(Ok(()));
        match server.serve(first) {
            Ok(()) => service.end(),
            Err(error) => service.fail(format_args!("queue {}: {error}", self.qid)),
        }
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
    pub(crate) kicker: Arc<Kicker>,
}

impl SpawnWorker for SpawnQueueWorker {
    fn spawn_worker(&self, service: &Arc<Service>, starting: StartingWorker) -> io::Result<()> {
        let entry = Entry::new(&self.device, self.qid)?;
        let (qid, owner, kicker) = (self.qid, service.clone(), self.kicker.clone());
        entry.start(service, starting, move |registered| match registered {
            Ok(()) => {
                if let Err(error) = kicker.kick(qid) {
                    owner.fail(format_args!("no process looks after queue {qid}: {error}"));
                }
            }
            Err(error) if is_end(&error) => owner.end(),
            Err(error) => owner.fail(format_args!("a further entry of queue {qid}: {error}")),
        })
    }
}

/// Reports the registration of one of a queue's first threads.
pub(crate) type Report = Sender<(u16, io::Result<()>)>;

struct Server {
    ring: Ring,
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
            let outcome = self.worker.serve(&mut frame, accepted);
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
