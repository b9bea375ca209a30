//! The request handler behind both transports.

use super::{
    counters::Counters,
    encode::{encode, encode_ioctl},
    mapped::Mappings,
    revoke::{Revocation, outlives},
    service::Service,
    worker::Worker,
};
use crate::{
    interrupt::{is_ended, was_killed},
    operations::{Answer, Context, Operations},
    transport::frame::Frame,
    wire::{
        Dialect, DirSink, Extensions, Header, LockRequest, Malformed, Opcode, Request,
        control::REVOKE,
        reply::{Validities, put},
    },
};
use holdfast_core::interrupt::{self, Interrupted};
use holdfast_types::{Errno, Ino, NAME_MAX, Result};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

/// Serves requests.
pub(crate) struct Handler {
    pub(super) operations: Arc<dyn Operations>,
    pub(super) validities: Validities,
    pub(super) interruptible: bool,
    pub(super) dialect: Dialect,
    pub(crate) service: Arc<Service>,
    pub(super) revocation: Revocation,
    pub(super) mappings: Mappings,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answer with this many bytes of payload, which are in the frame.
    Reply(Result<usize>),
    /// The kernel expects no answer.
    Silent,
}

impl Handler {
    /// Serves the request in `frame`, unless it was malformed.
    pub(crate) fn serve(
        &self,
        frame: &mut Frame,
        accepted: std::result::Result<(), Malformed>,
        worker: &mut Worker,
    ) -> Outcome {
        hop!();
        let header = frame.header();
        if let Err(error) = accepted {
            return malformed(header.opcode, error, &worker.counters);
        }
        worker.count(header.opcode);
        let served = catch_unwind(AssertUnwindSafe(|| {
            self.for_caller(&header, || {
                match self.run(&header, frame, worker) {
                    // Refused before anything was changed.
                    Outcome::Reply(Err(Errno::EROFS)) if self.operations.became_writable() => {
                        self.run(&header, frame, worker)
                    }
                    outcome => outcome,
                }
            })
        }));
        let served = served.unwrap_or_else(|_| {
            worker.counters.panic();
            let name = Opcode::from_raw(header.opcode).map_or("?", Opcode::name);
            tracing::error!(request = name, ino = %header.ino, "a request panicked: answered EIO");
            refused(header.opcode, Errno::EIO)
        });
        if let Outcome::Reply(Err(error)) = served {
            worker.counters.error(header.opcode, error);
        }
        served
    }

    /// Serves a request. Its waits end when its caller does. Waits for locks are different: each
    /// signal ends them.
    fn for_caller(&self, header: &Header, serve: impl FnOnce() -> Outcome) -> Outcome {
        let waits_for_lock = header.opcode == Opcode::SetLkW as u32;
        if !self.interruptible || waits_for_lock {
            return serve();
        }
        let waiting = self.service.interrupts.enter(header.unique);
        let (cancel, pid) = (waiting.cancel.clone(), header.pid);
        let closes = header.opcode == Opcode::Flush as u32;
        let caller = Interrupted::new(move || {
            cancel.is_cancelled() && is_ended(pid) || closes && was_killed(pid)
        });
        interrupt::during(Some(caller), serve)
    }

    fn run(&self, header: &Header, frame: &mut Frame, worker: &mut Worker) -> Outcome {
        hop!();
        let counters = &*worker.counters.clone();
        let request = match Request::decode(header, frame.body(), self.dialect) {
            Ok(request) => request,
            Err(error) => return malformed(header.opcode, error, counters),
        };
        if self.revocation.is_done() && !outlives(&request) {
            return Outcome::Reply(Err(Errno::EIO));
        }
        if self.serve_silently(header.ino, &request) {
            return Outcome::Silent;
        }
        self.prepare(header, &request, worker);
        let cx = context(header);
        let (operations, ino) = (&self.operations, header.ino);
        Outcome::Reply(match request {
            Request::Read(read) => {
                let out = limit(frame.out(), read.size);
                let read = operations.read(ino, &read, out);
                let read = read.map(|bytes| bytes.min(out.len()));
                read.inspect(|&bytes| counters.read(bytes))
            }
            Request::ReadDir { read, plus } => {
                let out = limit(frame.out(), read.size);
                let mut sink = DirSink::new(out, plus.then_some(&self.validities));
                let listed = operations.readdir(&cx, ino, &read, &mut sink);
                answer_listing(listed, sink.len())
            }
            Request::ReadLink => operations.readlink(ino, frame.out()),
            Request::ListXattr { size } => {
                sized(size, frame.out(), |out| operations.listxattr(&cx, ino, out))
            }
            Request::GetXattr { name, size } => {
                // The name is in the buffer that the value is written to.
                let mut copy = [0; NAME_MAX];
                match copy.get_mut(..name.len()) {
                    Some(copy) => copy.copy_from_slice(name),
                    None => return Outcome::Reply(Err(Errno::ERANGE)),
                }
                let name = &copy[..name.len()];
                sized(size, frame.out(), |out| {
                    operations.getxattr(&cx, ino, name, out)
                })
            }
            Request::Ioctl {
                fh,
                command: REVOKE,
                out_size,
                ..
            } => self
                .revocation
                .ioctl_revoke(&cx, fh, out_size, frame.out(), counters),
            Request::Ioctl {
                command,
                input,
                out_size,
                ..
            } => operations
                .ioctl(&cx, ino, command, input)
                .and_then(|bytes| encode_ioctl(&bytes, out_size, frame.out())),
            Request::SetLk(lock) => operations.setlk(ino, &lock, None).map(|()| 0),
            Request::SetLkW(lock) => self.wait_for_lock(header, &lock, worker).map(|()| 0),
            Request::Destroy => {
                operations.unmounting();
                Ok(0)
            }
            request => {
                let answer = self.answer(header, request, counters);
                answer.and_then(|(answer, validities)| encode(answer, &validities, frame.out()))
            }
        })
    }

    /// Serves a request that has no reply; `false`: it has one.
    fn serve_silently(&self, ino: Ino, request: &Request<'_>) -> bool {
        match request {
            Request::Forget { count } => self.operations.forget(ino, *count),
            Request::BatchForget(forgets) => forgets
                .iter()
                .for_each(|(ino, count)| self.operations.forget(ino, count)),
            Request::Interrupt { unique } => self.service.interrupts.interrupt(*unique),
            Request::NotifyReply => {}
            _ => return false,
        }
        true
    }

    /// Serves a request with a reply of fixed size. Attributes of a file that the kernel writes
    /// itself have no validity.
    fn answer(
        &self,
        header: &Header,
        request: Request<'_>,
        counters: &Counters,
    ) -> Result<(Answer, Validities)> {
        hop!();
        let (umask, extensions) = match request {
            Request::Symlink { extensions, .. } => (0, extensions),
            Request::Mknod {
                umask, extensions, ..
            }
            | Request::Mkdir {
                umask, extensions, ..
            } => (umask, extensions),
            Request::Create(create) | Request::TmpFile(create) => (create.umask, create.extensions),
            _ => Default::default(),
        };
        let cx = Context {
            umask: (umask & 0o777) as u16,
            extensions,
            ..context(header)
        };
        let ino = header.ino;
        let since = self.validities.notified.map(|_| Instant::now());
        let is_lookup = matches!(request, Request::Lookup { .. });
        let answer = match self.operations.answer(&cx, ino, request) {
            // The absence of names is cached.
            Err(Errno::ENOENT) if is_lookup && !self.validities.negative.is_zero() => {
                Answer::Negative
            }
            answer => answer?,
        };
        let about = match &answer {
            Answer::Entry(attr)
            | Answer::Attr(attr)
            | Answer::StatX(attr)
            | Answer::Created(attr, _) => Some(attr.ino),
            // An absent name depends on its directory.
            Answer::Negative => Some(ino),
            _ => None,
        };
        if let Answer::Written(bytes) = answer {
            counters.written(bytes);
        }
        let notified_for = || self.operations.notified_for(about?, since?);
        let mut validities = self.validities.of(notified_for);
        if about.is_some_and(|ino| self.operations.is_passed_through(ino)) {
            // Attributes must not be cached.
            validities.attr = Duration::ZERO;
        }
        Ok((answer, validities))
    }

    /// Takes the lock. Waits for it only if another thread can serve the unlock meanwhile.
    fn wait_for_lock(
        &self,
        header: &Header,
        lock: &LockRequest,
        worker: &mut Worker,
    ) -> Result<()> {
        match self.operations.setlk(header.ino, lock, None) {
            Err(Errno::EAGAIN) => {}
            taken => return taken,
        }
        let _counted = worker.before_request_wait()?;
        let waiting = self.service.interrupts.enter(header.unique);
        match self
            .operations
            .setlk(header.ino, lock, Some(&waiting.cancel))
        {
            // A revocation ended the wait, not a signal to the caller.
            Err(Errno::EINTR) if self.revocation.is_done() => Err(Errno::EIO),
            taken => taken,
        }
    }

    /// Preparations for a request: if it takes long, another thread is made ready.
    fn prepare(&self, header: &Header, request: &Request<'_>, worker: &mut Worker) {
        hop!();
        let revokes = matches!(request, Request::Ioctl { command, .. } if *command == REVOKE);
        if revokes || self.operations.takes_long(header.ino, request) {
            worker.before_long();
        }
        if let Request::SetAttr(set) = request {
            let notifier = &self.revocation.notifier;
            self.mappings
                .before_attributes(header, set, worker, notifier);
        }
    }
}

/// Answers with the entries before a failure, because they gave the kernel references. The kernel
/// continues behind them, and the next request meets the failure again.
fn answer_listing(listed: Result<()>, len: usize) -> Result<usize> {
    match listed {
        Err(error) if len == 0 => Err(error),
        _ => Ok(len),
    }
}

/// The outcome of a request that could not be decoded.
fn malformed(opcode: u32, error: Malformed, counters: &Counters) -> Outcome {
    counters.malformed();
    tracing::warn!(opcode, error = %error, "refused");
    refused(opcode, Errno::EINVAL)
}

/// The context of a request that creates nothing.
fn context(header: &Header) -> Context<'static> {
    Context {
        uid: header.uid,
        gid: header.gid,
        pid: header.pid,
        umask: 0,
        extensions: Extensions::default(),
    }
}

/// The outcome of a request that is not served: to some operations the kernel expects no answer.
fn refused(opcode: u32, errno: Errno) -> Outcome {
    match Opcode::from_raw(opcode) {
        Some(Opcode::Forget | Opcode::BatchForget | Opcode::Interrupt | Opcode::NotifyReply) => {
            Outcome::Silent
        }
        _ => Outcome::Reply(Err(errno)),
    }
}

fn limit(out: &mut [u8], size: u32) -> &mut [u8] {
    let len = out.len().min(size as usize);
    &mut out[..len]
}

/// Answers a request for an extended attribute: its length only, or its bytes.
fn sized(
    size: u32,
    out: &mut [u8],
    value: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<usize> {
    if size == 0 {
        let len = value(&mut [])?;
        return Ok(put(out, &[len as u32, 0]));
    }
    let out = limit(out, size);
    let len = value(out)?;
    if len > out.len() {
        Err(Errno::ERANGE)
    } else {
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_that_fails_behind_some_entries_answers_with_them() {
        assert_eq!(answer_listing(Err(Errno::EIO), 152), Ok(152));
        assert_eq!(answer_listing(Err(Errno::EIO), 0), Err(Errno::EIO));
        assert_eq!(answer_listing(Ok(()), 0), Ok(0));
    }

    #[test]
    fn an_attribute_answers_its_length_its_bytes_or_want_of_room() {
        let value = |out: &mut [u8]| {
            if let Some(out) = out.get_mut(..5) {
                out.copy_from_slice(b"value");
            }
            Ok(5)
        };
        let mut out = [0; 64];
        assert_eq!(sized(0, &mut out, value), Ok(8));
        assert_eq!(out[..8], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sized(5, &mut out, value), Ok(5));
        assert_eq!(&out[..5], b"value");
        assert_eq!(sized(4, &mut out, value), Err(Errno::ERANGE));
        assert_eq!(
            sized(4, &mut out, |_| Err(Errno::ENODATA)),
            Err(Errno::ENODATA)
        );
    }
}
