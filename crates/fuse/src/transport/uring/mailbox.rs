//! From workers back to the thread that holds the ring.

use crate::transport::frame::Frame;
use holdfast_types::Result;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::{io, mem, os::fd::OwnedFd, sync::Arc};
use zerocopy::IntoBytes;

/// A request that a worker has served.
pub(super) struct Done {
    pub(super) slot: usize,
    pub(super) frame: Frame,
    pub(super) result: Result<usize>,
}

/// Where workers leave served requests.
pub(crate) struct Mailbox {
    done: Mutex<Vec<Done>>,
    wake: Arc<OwnedFd>,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            done: Mutex::default(),
            wake: Arc::new(wake),
        })
    }

    pub(super) fn wake_descriptor(&self) -> Arc<OwnedFd> {
        self.wake.clone()
    }

    pub(super) fn post(&self, done: Done) {
        self.done.lock().push(done);
        self.wake();
    }

    /// Makes the ring's thread look round.
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then it is readable all the same.
        let _ = rustix::io::write(&*self.wake, 1u64.as_bytes());
    }

    /// Is nothing left to be taken?
    pub(crate) fn is_empty(&self) -> bool {
        self.done.lock().is_empty()
    }

    /// Takes everything that was left, and the wake-ups with it.
    pub(super) fn take(&self) -> Vec<Done> {
        let mut count = [0; 8];
        // Nothing to read means nobody has called; the box may hold something even so.
        let _ = rustix::io::read(&*self.wake, &mut count);
        mem::take(&mut *self.done.lock())
    }
}
