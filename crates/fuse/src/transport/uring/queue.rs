//! One processor's queue and the thread that serves it.

use super::{
    mailbox::{Done, Mailbox},
    nudge::Nudger,
    sys::{Event, Ring},
};
use crate::{
    session::{
        Counters,
        handler::{Crew, Outcome, Place},
        service::Service,
    },
    transport::{frame::Frame, mark_serving},
};
use holdfast_types::{Errno, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
};

/// Frames of one queue, at most: each belongs to a request that waits somewhere.
const SLOTS_MAX: usize = 4096;
/// When fewer frames than this are armed, another is registered.
const ARMED_MIN: usize = 3;
/// Frames given back for no reason before the queue gives up.
const LOST_MAX: usize = 64;

/// How a queue's beginning went.
#[derive(Debug)]
pub(crate) enum QueueReport {
    /// The ring is built (before INIT is answered).
    Built(io::Result<()>),
    /// The queue is registered (after INIT is answered).
    Registered(u16, io::Result<()>),
}

/// What a queue's thread starts from.
pub(crate) struct Queue {
    pub(crate) qid: u16,
    pub(crate) depth: usize,
    pub(crate) device: Arc<OwnedFd>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) nudger: Nudger,
    pub(crate) report: Sender<QueueReport>,
    /// Brings the service once INIT is answered; hangs up if there will be none.
    pub(crate) go: Receiver<Arc<Service>>,
}

impl Queue {
    /// The thread: builds the ring, waits for the word, serves until the connection ends.
    pub(crate) fn run(self) {
        mark_serving();
        pin(self.qid);
        let wake = self.mailbox.wake_descriptor();
        let ring = match Ring::new(&self.device, wake, self.qid, self.depth) {
            Ok(ring) => {
                let _ = self.report.send(QueueReport::Built(Ok(())));
                ring
            }
            Err(error) => {
                let _ = self.report.send(QueueReport::Built(Err(error)));
                return;
            }
        };
        let Ok(service) = self.go.recv() else {
            return;
        };
        let counters = service.registry.enlist();
        let mut server = Server {
            qid: self.qid,
            ring,
            mailbox: self.mailbox,
            nudger: self.nudger,
            first_slots: 0,
            nudge: false,
            service,
            counters,
            lost: 0,
            ending: false,
        };
        let registered = server.register(self.depth.max(ARMED_MIN));
        let failed = registered.is_err();
        let _ = self
            .report
            .send(QueueReport::Registered(self.qid, registered));
        // Nobody else may hold the channel open while this queue serves.
        drop(self.report);
        if !failed && let Err(error) = server.serve() {
            tracing::error!(qid = self.qid, %error, "a queue failed: its requests wait for ever");
        }
    }
}

/// Binds this thread to processor `qid`; one that is not there yet leaves it free.
fn pin(qid: u16) {
    let mut set = CpuSet::new();
    if usize::from(qid) < CpuSet::MAX_CPU {
        set.set(qid.into());
        let _ = sched_setaffinity(None, &set);
    }
}

struct Server {
    qid: u16,
    ring: Ring,
    mailbox: Arc<Mailbox>,
    nudger: Nudger,
    /// Frames registered at the start.
    first_slots: usize,
    /// Is the kernel to be nudged once the new frames are registered?
    nudge: bool,
    service: Arc<Service>,
    counters: Arc<Counters>,
    lost: usize,
    ending: bool,
}

impl Server {
    /// Registers the first frames, and sees whether the kernel takes them.
    fn register(&mut self, depth: usize) -> io::Result<()> {
        for _ in 0..depth {
            self.ring.register(Frame::new(self.service.payload_max)?)?;
        }
        self.first_slots = depth;
        self.ring.watch_wake()?;
        self.ring.submit()?;
        // A refusal completes at once; what is taken completes with its first request, which
        // cannot be here yet for all queues: whatever came is served or reported.
        self.counters.begin();
        while let Some(event) = self.ring.next() {
            match event {
                Event::Lost { error, .. } => return Err(error),
                event => self.take(event)?,
            }
        }
        self.ring.submit()?;
        self.counters.end();
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.ring.submit()?;
            if std::mem::take(&mut self.nudge) {
                self.nudger.nudge(self.qid);
            }
            self.ring.wait()?;
            self.counters.begin();
            while let Some(event) = self.ring.next() {
                self.take(event)?;
            }
            self.ring.submit()?;
            self.counters.end();
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        // What is armed comes back when the connection ends; only then is its memory free.
        (self.ending || self.service.is_over()) && self.ring.armed() == 0
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Request { slot, frame } => self.request(slot, frame),
            Event::Woken => {
                for done in self.mailbox.take() {
                    self.commit(done.slot, done.frame, done.result)?;
                }
                self.ring.watch_wake()
            }
            Event::Lost { frame, error } => self.lost(frame, &error),
        }
    }

    fn request(&mut self, slot: usize, mut frame: Frame) -> io::Result<()> {
        let handler = &self.service.handler;
        let outcome = match frame.accept_split() {
            Ok(()) => handler.serve(&mut frame, &self.counters, Place::Front),
            Err(error) => handler.malformed(frame.header().opcode, error, &self.counters),
        };
        match outcome {
            Outcome::Reply(result) => self.commit(slot, frame, result),
            // Nothing comes here that wants no answer; should it, the frame goes back even so.
            Outcome::Silent => self.commit(slot, frame, Err(Errno::EIO)),
            Outcome::Defer(crew) => {
                let mailbox = self.mailbox.clone();
                self.service.defer(crew, frame, move |frame, result| {
                    let result = result.unwrap_or(Err(Errno::EIO));
                    mailbox.post(Done {
                        slot,
                        frame,
                        result,
                    });
                });
                self.keep_armed()?;
                // What waits for others of its kind must not keep them out.
                self.nudge |= crew == Crew::Locks && self.ring.slots() > self.first_slots;
                Ok(())
            }
        }
    }

    fn commit(&mut self, slot: usize, mut frame: Frame, result: Result<usize>) -> io::Result<()> {
        let commit_id = frame.ring_reply(result);
        self.ring.commit(slot, frame, commit_id)
    }

    /// Registers other frames when nearly all are with workers.
    fn keep_armed(&mut self) -> io::Result<()> {
        while self.ring.armed() < ARMED_MIN && self.ring.slots() < SLOTS_MAX && !self.ending {
            self.ring.register(Frame::new(self.service.payload_max)?)?;
        }
        Ok(())
    }

    fn lost(&mut self, frame: Frame, error: &io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::ENOTCONN | libc::ENODEV | libc::ECANCELED | libc::ECONNABORTED) => {
                self.ending = true;
                Ok(())
            }
            _ => {
                self.lost += 1;
                tracing::error!(%error, "the kernel gave a frame back");
                if self.lost > LOST_MAX {
                    return Err(io::Error::from_raw_os_error(libc::EIO));
                }
                self.ring.register(frame)
            }
        }
    }
}
