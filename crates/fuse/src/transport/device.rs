//! The classic transport: read a request from `/dev/fuse`, write the reply to it.
//!
//! Each thread has a descriptor of its own (a clone has its own queue of requests under way, and
//! a reply must go to the descriptor that its request came from). With io_uring one such reader
//! stays for what the kernel only sends this way: FORGET, INTERRUPT.

use super::{frame::Frame, mark_serving};
use crate::session::{
    Counters,
    handler::{Outcome, Place},
    service::Service,
};
use holdfast_types::{Errno, Result};
use rustix::io::Errno as Code;
use std::{mem, os::fd::OwnedFd, sync::Arc};

/// Serves until the connection ends.
pub(crate) fn run(service: &Arc<Service>, device: &Arc<OwnedFd>, mut frame: Frame) {
    mark_serving();
    let counters = service.registry.enlist();
    loop {
        match rustix::io::read(&**device, frame.device_area()) {
            Ok(len) => {
                counters.begin();
                take(service, device, &counters, &mut frame, len);
                counters.end();
            }
            // A request that was taken back, or a signal.
            Err(Code::NOENT | Code::INTR | Code::AGAIN) => {}
            Err(Code::NODEV | Code::CONNABORTED) => break,
            Err(error) => {
                tracing::error!(%error, "reading /dev/fuse failed: the session ends");
                break;
            }
        }
    }
    service.end();
}

/// Serves the request that was read, and leaves a frame for the next.
fn take(
    service: &Arc<Service>,
    device: &Arc<OwnedFd>,
    counters: &Counters,
    frame: &mut Frame,
    len: usize,
) {
    if let Err(error) = frame.accept_flat(len) {
        // Without a header there is no telling what to answer.
        service.handler.malformed(0, error, counters);
        return;
    }
    match service.handler.serve(frame, counters, Place::Front) {
        Outcome::Reply(result) => reply(device, frame, result),
        Outcome::Silent => {}
        Outcome::Defer(crew) => match service.frame() {
            Ok(next) => {
                let deferred = mem::replace(frame, next);
                let (device, owner) = (device.clone(), service.clone());
                service.defer(crew, deferred, move |mut frame, result| {
                    if let Some(result) = result {
                        reply(&device, &mut frame, result);
                    }
                    owner.give_back(frame);
                });
            }
            Err(_) => reply(device, frame, Err(Errno::ENOMEM)),
        },
    }
}

fn reply(device: &OwnedFd, frame: &mut Frame, result: Result<usize>) {
    let header = frame.header();
    let bytes = frame.device_reply(result);
    match rustix::io::write(device, bytes) {
        // The caller has gone, or the connection.
        Ok(_) | Err(Code::NOENT | Code::NODEV | Code::CONNABORTED) => {}
        Err(error) => tracing::error!(
            opcode = header.opcode,
            ino = %header.ino,
            len = bytes.len(),
            %error,
            "the kernel refused a reply"
        ),
    }
}
