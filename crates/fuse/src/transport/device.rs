//! The classic transport: read a request from `/dev/fuse`, write the reply to it.
//!
//! Each thread has a cloned descriptor, with its own queue of requests under way. A reply must be
//! written to the descriptor that its request was read from. With io_uring one such reader remains,
//! for FORGET and INTERRUPT, which the kernel sends only this way.

use super::{frame::Frame, mark_serving, sys::clone_device};
use crate::session::{
    handler::{Handler, Outcome},
    pool::{SpawnWorker, StartingWorker},
    service::ServingGuard,
    worker::Worker,
};
use crate::wire::layout;
use holdfast_types::{Errno, Result};
use rustix::io::Errno as Code;
use std::{io, os::fd::OwnedFd, sync::Arc, thread};

/// Starts readers.
pub(crate) struct SpawnDeviceWorker {
    pub(crate) device: Arc<OwnedFd>,
    pub(crate) handler: Arc<Handler>,
}

impl SpawnWorker for SpawnDeviceWorker {
    fn spawn_worker(&self, starting: StartingWorker) -> io::Result<()> {
        // Without a clone (no permission for the device, say) all threads read from one queue.
        let own = clone_device(&self.device).map_or_else(|_| self.device.clone(), Arc::new);
        let service = &starting.pool.service;
        let frame = Frame::new(service.payload_max)?;
        let serving_guard = ServingGuard::new(service);
        let handler = self.handler.clone();
        thread::Builder::new()
            .name("holdfast-dev".into())
            .spawn(move || {
                mark_serving();
                starting.pool.join();
                let worker = Worker::new(starting.pool.clone(), None);
                drop(starting);
                let mut reader = Reader {
                    device: own,
                    handler,
                    worker,
                };
                match reader.run(frame) {
                    Ok(()) => serving_guard.service.end(),
                    Err(error) => serving_guard
                        .service
                        .fail(format_args!("/dev/fuse: {error}")),
                }
            })?;
        Ok(())
    }
}

struct Reader {
    device: Arc<OwnedFd>,
    handler: Arc<Handler>,
    worker: Worker,
}

impl Reader {
    /// Serves until the connection ends.
    fn run(&mut self, mut frame: Frame) -> io::Result<()> {
        loop {
            match rustix::io::read(&*self.device, frame.device_area()) {
                Ok(len) => {
                    self.worker.begin();
                    self.take(&mut frame, len)?;
                    self.worker.end();
                }
                // A request that was taken back, or a signal.
                Err(Code::NOENT | Code::INTR | Code::AGAIN) => {}
                Err(Code::NODEV | Code::CONNABORTED) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Serves the request that was read.
    fn take(&mut self, frame: &mut Frame, len: usize) -> io::Result<()> {
        if len < size_of::<layout::InHeader>() {
            // It has no number to answer to.
            return Err(io::Error::other("a request without a header was read"));
        }
        let accepted = frame.accept_flat(len);
        let outcome = self.handler.serve(frame, accepted, &mut self.worker);
        self.worker.before_reply();
        match outcome {
            Outcome::Reply(result) => reply(&self.device, frame, result),
            Outcome::Silent => Ok(()),
        }
    }
}

/// Writes the reply. If the kernel refuses it, writes an error, so that the caller is answered.
fn reply(device: &OwnedFd, frame: &mut Frame, result: Result<usize>) -> io::Result<()> {
    let header = frame.header();
    let mut refused = None;
    for result in [result, Err(Errno::EIO)] {
        match rustix::io::write(device, frame.device_reply(result)) {
            // The caller has gone, or the connection.
            Ok(_) | Err(Code::NOENT | Code::NODEV | Code::CONNABORTED) => return Ok(()),
            Err(error) => {
                tracing::error!(
                    opcode = header.opcode,
                    ino = %header.ino,
                    %error,
                    "the kernel refused a reply"
                );
                refused = Some(error);
            }
        }
    }
    refused.map_or(Ok(()), |error| Err(error.into()))
}
