//! The one handler behind both transports: a frame goes in as a request, comes out as a reply.

use super::{
    counters::Counters,
    encode::{Answer, encode, encode_ioctl},
    mapped::Mappings,
    revoke::{REVOKE, Revocation, outlives},
    worker::Worker,
};
use crate::{
    interrupt::Interrupts,
    operations::{Context, Operations},
    transport::frame::Frame,
    wire::{
        Dialect, DirPlusSink, DirSink, Extensions, Header, Malformed, Opcode, ReadRequest, Request,
        layout,
        reply::{Validities, put},
    },
};
use holdfast_types::{Errno, NAME_MAX, Result};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

/// Serves requests.
pub(crate) struct Handler {
    pub(super) operations: Arc<dyn Operations>,
    pub(super) validities: Validities,
    pub(super) dialect: Dialect,
    pub(super) interrupts: Interrupts,
    pub(super) revocation: Revocation,
    pub(super) mappings: Mappings,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answer with this much payload, which stands in the frame.
    Reply(Result<usize>),
    /// There is nothing to answer.
    Silent,
}

impl Handler {
    /// Serves the request in `frame`.
    pub(crate) fn serve(&self, frame: &mut Frame, worker: &mut Worker) -> Outcome {
        let header = frame.header();
        worker.count(header.opcode);
        let served = catch_unwind(AssertUnwindSafe(|| {
            match self.run(&header, frame, worker) {
                // Refused before anything was done.
                Outcome::Reply(Err(Errno::EROFS)) if self.operations.became_writable() => {
                    self.run(&header, frame, worker)
                }
                outcome => outcome,
            }
        }));
        served.unwrap_or_else(|_| {
            worker.counters.panic();
            let name = Opcode::from_raw(header.opcode).map_or("?", Opcode::name);
            tracing::error!(request = name, ino = %header.ino, "a request panicked: answered EIO");
            if is_silent(header.opcode) {
                Outcome::Silent
            } else {
                Outcome::Reply(Err(Errno::EIO))
            }
        })
    }

    /// The outcome of a request that could not even be taken apart.
    pub(crate) fn malformed(&self, opcode: u32, error: Malformed, counters: &Counters) -> Outcome {
        counters.malformed();
        tracing::warn!(opcode, error = %error, "refused");
        if is_silent(opcode) {
            Outcome::Silent
        } else {
            Outcome::Reply(Err(Errno::EINVAL))
        }
    }

    fn run(&self, header: &Header, frame: &mut Frame, worker: &mut Worker) -> Outcome {
        let counters = &*worker.counters.clone();
        let request = match Request::decode(header, frame.body(), self.dialect) {
            Ok(request) => request,
            Err(error) => return self.malformed(header.opcode, error, counters),
        };
        if self.revocation.is_done() && !outlives(&request) {
            return Outcome::Reply(Err(Errno::EIO));
        }
        self.prepare(header, &request, worker);
        let cx = context(header, 0, Extensions::default());
        Outcome::Reply(match request {
            Request::Forget { count } => {
                self.operations.forget(header.ino, count);
                return Outcome::Silent;
            }
            Request::BatchForget(forgets) => {
                for (ino, count) in forgets.iter() {
                    self.operations.forget(ino, count);
                }
                return Outcome::Silent;
            }
            Request::Interrupt { unique } => {
                self.interrupts.interrupt(unique);
                return Outcome::Silent;
            }
            Request::NotifyReply => return Outcome::Silent,
            Request::Read(read) => self.read(&cx, header, &read, frame.out(), counters),
            Request::ReadDir(read) => self.readdir(&cx, header, &read, frame.out()),
            Request::ReadDirPlus(read) => self.readdirplus(&cx, header, &read, frame.out()),
            Request::ReadLink => self.operations.readlink(&cx, header.ino, frame.out()),
            Request::ListXattr { size } => sized(size, frame.out(), |out| {
                self.operations.listxattr(&cx, header.ino, out)
            }),
            Request::GetXattr { name, size } => {
                // The name lies where the value will go.
                let mut copy = [0; NAME_MAX];
                match copy.get_mut(..name.len()) {
                    Some(copy) => copy.copy_from_slice(name),
                    None => return Outcome::Reply(Err(Errno::ERANGE)),
                }
                let name = &copy[..name.len()];
                sized(size, frame.out(), |out| {
                    self.operations.getxattr(&cx, header.ino, name, out)
                })
            }
            Request::Ioctl {
                fh,
                command: REVOKE,
                out_size,
                ..
            } => self.ioctl_revoke(&cx, fh, out_size, frame.out(), counters),
            Request::Ioctl {
                command,
                input,
                out_size,
                ..
            } => self
                .operations
                .ioctl(&cx, header.ino, command, input)
                .and_then(|bytes| encode_ioctl(&bytes, out_size, frame.out())),
            Request::SetLkW(lock) => self
                .wait_for_lock(&cx, header, &lock, worker)
                .and_then(|answer| encode(Ok(answer), &self.validities, frame.out())),
            request => {
                let answer = self.fixed(header, request, counters);
                self.encode(header, answer, frame)
            }
        })
    }

    /// Serves a request of fixed reply; tells since when, if that makes a difference.
    fn fixed(
        &self,
        header: &Header,
        request: Request<'_>,
        counters: &Counters,
    ) -> (Result<Answer>, Option<Instant>) {
        let since = self.validities.heard.map(|_| Instant::now());
        let answer = self.answer(header, request);
        if let Ok(Answer::Written(bytes)) = answer {
            counters.written(bytes);
        }
        (answer, since)
    }

    /// Writes an answer, with how long it may be believed: attributes not at all of a file that the kernel writes by itself.
    /// `since` is from before the question; `None`: that makes no difference.
    fn encode(
        &self,
        header: &Header,
        (answer, since): (Result<Answer>, Option<Instant>),
        frame: &mut Frame,
    ) -> Result<usize> {
        let told = match &answer {
            Ok(Answer::Entry(attr) | Answer::Attr(attr) | Answer::StatX(attr)) => Some(attr.ino),
            Ok(Answer::Created(attr, _)) => Some(attr.ino),
            _ => None,
        };
        // Else of the directory in which there is no such name.
        let absent = matches!(answer, Ok(Answer::Absent)).then_some(header.ino);
        let is_heard = |ino| since.is_some_and(|since| self.operations.is_heard(ino, since));
        let mut validities = self.validities.of(|| told.or(absent).is_some_and(is_heard));
        if told.is_some_and(|ino| self.operations.is_passed_through(ino)) {
            validities = validities.without_attributes();
        }
        encode(answer, &validities, frame.out())
    }

    /// What is done before a request is served: one that surely lasts has another thread stand in for this one.
    fn prepare(&self, header: &Header, request: &Request<'_>, worker: &mut Worker) {
        let revokes = matches!(request, Request::Ioctl { command, .. } if *command == REVOKE);
        if revokes || self.operations.takes_long(header.ino, request) {
            worker.before_long();
        }
        if let Request::SetAttr(set) = request {
            self.before_attributes(header, set, worker);
        }
    }

    fn read(
        &self,
        cx: &Context<'_>,
        header: &Header,
        read: &ReadRequest,
        out: &mut [u8],
        counters: &Counters,
    ) -> Result<usize> {
        let out = limit(out, read.size);
        let bytes = self
            .operations
            .read(cx, header.ino, read, out)?
            .min(out.len());
        counters.read(bytes);
        Ok(bytes)
    }

    fn readdir(
        &self,
        cx: &Context<'_>,
        header: &Header,
        read: &ReadRequest,
        out: &mut [u8],
    ) -> Result<usize> {
        let mut sink = DirSink::new(limit(out, read.size));
        let listed = self.operations.readdir(cx, header.ino, read, &mut sink);
        answer_listing(listed, sink.len())
    }

    fn readdirplus(
        &self,
        cx: &Context<'_>,
        header: &Header,
        read: &ReadRequest,
        out: &mut [u8],
    ) -> Result<usize> {
        let mut sink = DirPlusSink::new(limit(out, read.size), &self.validities);
        let listed = self.operations.readdirplus(cx, header.ino, read, &mut sink);
        answer_listing(listed, sink.len())
    }
}

/// Answers with the entries that came before a failure, which give the kernel references: it goes on
/// behind them, and the next request meets the failure again.
fn answer_listing(listed: Result<()>, len: usize) -> Result<usize> {
    match listed {
        Err(error) if len == 0 => Err(error),
        _ => Ok(len),
    }
}

/// The context of a request.
pub(super) fn context<'a>(header: &Header, umask: u32, extensions: Extensions<'a>) -> Context<'a> {
    Context {
        unique: header.unique,
        uid: header.uid,
        gid: header.gid,
        pid: header.pid,
        umask: (umask & 0o777) as u16,
        extensions,
    }
}

/// Does the kernel expect no answer to this operation?
fn is_silent(opcode: u32) -> bool {
    matches!(
        Opcode::from_raw(opcode),
        Some(Opcode::Forget | Opcode::BatchForget | Opcode::Interrupt | Opcode::NotifyReply)
    )
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
        return Ok(put(
            out,
            &layout::GetXattrOut {
                size: len as u32,
                padding: 0,
            },
        ));
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
