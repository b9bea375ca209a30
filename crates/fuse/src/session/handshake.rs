//! The first exchange with the kernel.

use super::{Config, Negotiated};
use crate::{
    mount::MountError,
    transport::frame::Frame,
    wire::{ABI_MAJOR, ABI_MINOR, Dialect, InitRequest, Request, layout, reply::put},
};
use holdfast_types::Errno;
use rustix::io::Errno as Code;
use std::{io, os::fd::OwnedFd};

/// An INIT that was read and not yet answered.
pub(super) struct Handshake<'a> {
    device: &'a OwnedFd,
    frame: Frame,
    init: InitRequest,
}

impl<'a> Handshake<'a> {
    /// Reads INIT, which the kernel sends first.
    pub(super) fn begin(device: &'a OwnedFd) -> Result<Self, MountError> {
        let failed = |source| MountError::Handshake { source };
        let mut frame = Frame::new(0).map_err(failed)?;
        loop {
            let init = read_init(device, &mut frame).map_err(failed)?;
            if init.major <= ABI_MAJOR {
                return Ok(Self {
                    device,
                    frame,
                    init,
                });
            }
            // A newer kernel sends INIT again after it has seen our major version.
            let ours = layout::InitOut {
                major: ABI_MAJOR,
                minor: ABI_MINOR,
                ..Default::default()
            };
            let len = put(frame.out(), &ours);
            write(device, frame.device_reply(Ok(len))).map_err(failed)?;
        }
    }

    /// What this kernel and this configuration agree on.
    pub(super) fn negotiate(
        &mut self,
        config: &Config,
        uring: bool,
    ) -> Result<Negotiated, MountError> {
        let negotiated = Negotiated::of(&self.init, config, uring);
        negotiated.ok_or_else(|| {
            self.refuse();
            MountError::KernelTooOld {
                minor: self.init.minor,
            }
        })
    }

    /// Does the kernel offer this?
    pub(super) fn offers(&self, flags: crate::wire::InitFlags) -> bool {
        self.init.flags.contains(flags)
    }

    /// Answers; requests begin to flow.
    pub(super) fn finish(mut self, negotiated: &Negotiated) -> Result<(), MountError> {
        let len = put(self.frame.out(), &negotiated.reply());
        write(self.device, self.frame.device_reply(Ok(len)))
            .map_err(|source| MountError::Handshake { source })
    }

    /// Answers that there will be no session; the mount is of no use then.
    pub(super) fn refuse(&mut self) {
        // The mount is undone in any case.
        let _ = write(self.device, self.frame.device_reply(Err(Errno::EPROTO)));
    }
}

fn read_init(device: &OwnedFd, frame: &mut Frame) -> io::Result<InitRequest> {
    let len = loop {
        match rustix::io::read(device, frame.device_area()) {
            Err(Code::INTR | Code::AGAIN | Code::NOENT) => {}
            result => break result?,
        }
    };
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    frame.accept_flat(len).map_err(invalid)?;
    let header = frame.header();
    match Request::decode(&header, frame.body(), Dialect::default()).map_err(invalid)? {
        Request::Init(init) => Ok(init),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the first request is not INIT",
        )),
    }
}

fn write(device: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    rustix::io::write(device, bytes)?;
    Ok(())
}
