//! The unsafe floor of the io_uring transport: a ring that owns the frames the kernel uses.
#![expect(unsafe_code, reason = "submissions hand addresses to the kernel")]

use crate::{
    transport::frame::{Frame, PAYLOAD, RING_HEADERS, RING_IOVECS},
    wire::{
        flags::bit::{RING_COMMIT_AND_FETCH, RING_REGISTER},
        layout,
        reply::put,
    },
};
use io_uring::{IoUring, opcode, squeue::Entry128, types};
use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    thread,
    time::Duration,
};
use zerocopy::{Immutable, IntoBytes};

/// Submissions under way: one, and room for the kernel's rounding.
const ENTRIES: u32 = 2;
/// Pause before a call is repeated that the kernel had no memory for.
const PAUSE: Duration = Duration::from_millis(1);
/// The fuse device in the ring's table of files.
const DEVICE: types::Fixed = types::Fixed(0);
/// Offsets of fields in a submission entry, for which the crate has no setter here.
const SQE_LEN: usize = 24;

/// Two iovecs, as REGISTER wants them: where the headers are, and where the payload.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Iovecs {
    headers: u64,
    headers_len: u64,
    payload: u64,
    payload_len: u64,
}

/// The ring of one entry. While the kernel has its frame, the frame is in `armed`, where nothing
/// can reach it; else the serving thread has it.
pub(super) struct Ring {
    ring: IoUring<Entry128>,
    /// The frame that the kernel may write to at any time.
    armed: Option<Frame>,
    qid: u16,
}

/// What a completion says.
pub(super) enum Event {
    /// The kernel has put a request into the frame.
    Request(Frame),
    /// The kernel gave the frame back without a request.
    Lost(io::Error),
}

impl Ring {
    /// A ring for requests of processor `qid` through `device`.
    pub(super) fn new(device: &OwnedFd, qid: u16) -> io::Result<Self> {
        // A copy of this process with the ring mapped would keep the connection after the end of
        // this process.
        let ring = IoUring::<Entry128>::builder().dontfork().build(ENTRIES)?;
        ring.submitter().register_files(&[device.as_raw_fd()])?;
        Ok(Self {
            ring,
            armed: None,
            qid,
        })
    }

    /// Offers a new frame to the kernel.
    pub(super) fn register(&mut self, mut frame: Frame) -> io::Result<()> {
        let region = frame.region_mut();
        let start = region.address() as u64;
        let iovecs = Iovecs {
            headers: start,
            headers_len: RING_HEADERS as u64,
            payload: start + PAYLOAD as u64,
            payload_len: (region.len() - PAYLOAD) as u64,
        };
        put(&mut region[RING_IOVECS..], &iovecs);
        let mut entry = opcode::UringCmd80::new(DEVICE, RING_REGISTER)
            .cmd(self.command(0))
            .addr(Some(start + RING_IOVECS as u64))
            .build();
        set_len(&mut entry, 2);
        self.arm(frame, &entry)
    }

    /// Gives the reply in `frame` to the kernel, and the frame for the next request.
    pub(super) fn commit(&mut self, frame: Frame, commit_id: u64) -> io::Result<()> {
        let entry = opcode::UringCmd80::new(DEVICE, RING_COMMIT_AND_FETCH)
            .cmd(self.command(commit_id))
            .build();
        self.arm(frame, &entry)
    }

    fn command(&self, commit_id: u64) -> [u8; 80] {
        let mut bytes = [0; 80];
        put(
            &mut bytes,
            &layout::RingCommand {
                commit_id,
                qid: self.qid,
                ..Default::default()
            },
        );
        bytes
    }

    fn arm(&mut self, frame: Frame, entry: &Entry128) -> io::Result<()> {
        debug_assert!(self.armed.is_none(), "a ring holds one frame");
        self.armed = Some(frame);
        loop {
            // SAFETY: the entry points to the frame in `armed`, which stays mapped until its
            // completion has been taken (see `next` and `drop`).
            let pushed = unsafe { self.ring.submission().push(entry) };
            if pushed.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Hands everything pushed to the kernel.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        retried(|| self.ring.submit())
    }

    /// Waits for an event, if there is none yet. It is separate from `submit`: one call for both is
    /// slower, because the submission wakes the caller, which needs this processor.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        if !self.ring.completion().is_empty() {
            return Ok(());
        }
        retried(|| self.ring.submit_and_wait(1))
    }

    /// The next event, if there is one.
    pub(super) fn next(&mut self) -> Option<Event> {
        let completion = self.ring.completion().next()?;
        // The kernel has completed the frame's command, and does not access it any more.
        let frame = self.armed.take()?;
        Some(match completion.result() {
            0.. => Event::Request(frame),
            code => Event::Lost(io::Error::from_raw_os_error(-code)),
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel cancels an armed command later and may still write to the frame. So the frame
        // is leaked: its addresses must not be reused.
        if let Some(frame) = self.armed.take() {
            mem::forget(frame);
        }
    }
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    loop {
        match call() {
            Ok(_) => return Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // No memory for the moment: what was pushed stays pushed.
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => thread::sleep(PAUSE),
                _ => return Err(error),
            },
        }
    }
}

/// Sets the `len` field of a submission entry.
fn set_len(entry: &mut Entry128, len: u32) {
    const { assert!(size_of::<Entry128>() == 128) };
    let start: *mut u8 = std::ptr::from_mut(entry).cast();
    // SAFETY: an entry is the kernel's structure of 128 bytes (asserted above), and 24 is
    // inside of it.
    let field = unsafe { start.add(SQE_LEN) };
    // SAFETY: the field is a plain 32-bit integer at this place in the kernel's ABI, and `entry`
    // is borrowed exclusively.
    unsafe { field.cast::<u32>().write_unaligned(len) };
}
