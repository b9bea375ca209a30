//! Batches of scattered reads through io_uring.
//!
//! Reads go into the ring's own buffers and are copied: the kernel may write to memory that it was
//! given for as long as it likes, and a caller's memory cannot wait for that.
//!
//! *Locking.* `Rings::idle` is a leaf, held to take a ring or to put it back. Each batch has a ring
//! of its own while it runs.

mod sys;

use super::transfer::Transfers;
use crate::{Cause, ReadRequest};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use sys::{Done, Ring};

/// Reads under way at once.
const DEPTH: usize = 32;
/// Bytes of one read; longer requests are cut.
const SLOT: usize = 64 << 10;
/// How often a kernel may say that it cannot just now before it counts as one that cannot.
const ATTEMPTS: u32 = 10_000;
/// Rings kept for the next batch.
const KEPT: usize = 4;

/// Rings that wait for use.
pub(super) struct Rings {
    depth: usize,
    alignment: usize,
    idle: Mutex<Vec<Ring>>,
    /// The kernel, or who watches over its calls, does not want it.
    refused: AtomicBool,
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings").finish_non_exhaustive()
    }
}

impl Rings {
    /// For buffers aligned to so many bytes.
    pub(super) const fn new(alignment: usize) -> Self {
        Self {
            depth: DEPTH,
            alignment,
            idle: Mutex::new(Vec::new()),
            refused: AtomicBool::new(false),
        }
    }

    /// Whether a ring is to be had.
    pub(super) fn usable(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Fills all buffers. What the ring does not do whole is read without it.
    ///
    /// # Errors
    /// The request that failed, and why.
    pub(super) fn read(
        &self,
        file: &File,
        transfers: &Transfers,
        requests: &mut [ReadRequest<'_>],
    ) -> Result<(), (usize, Cause)> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let ring = kept.map_or_else(|| Ring::new(self.depth, SLOT, self.alignment), Ok);
        let mut batch = Batch::new(file, requests);
        match ring.and_then(|mut ring| batch.run(&mut ring).map(|()| ring)) {
            Ok(ring) => {
                let mut idle = idle();
                if idle.len() < KEPT {
                    idle.push(ring);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "io_uring is not to be had, batches are read one by one");
                self.refused.store(true, Ordering::Relaxed);
            }
        }
        batch.finish(transfers)
    }
}

/// A part of a request that goes through one slot.
struct Piece {
    request: usize,
    range: Range<usize>,
    done: bool,
}

struct Batch<'a, 'b> {
    file: &'a File,
    requests: &'a mut [ReadRequest<'b>],
    pieces: Vec<Piece>,
}

impl<'a, 'b> Batch<'a, 'b> {
    fn new(file: &'a File, requests: &'a mut [ReadRequest<'b>]) -> Self {
        let pieces = requests.iter().enumerate().flat_map(|(request, it)| {
            let len = it.buf.len();
            (0..len).step_by(SLOT).map(move |at| Piece {
                request,
                range: at..(at + SLOT).min(len),
                done: false,
            })
        });
        Self {
            pieces: pieces.collect(),
            file,
            requests,
        }
    }

    /// Has the ring read what it will. An error is the ring's, and leaves it in an unknown state.
    fn run(&mut self, ring: &mut Ring) -> io::Result<()> {
        let mut free: Vec<usize> = (0..ring.depth()).collect();
        let mut holds = vec![0; ring.depth()];
        let (mut next, mut idle) = (0, 0);
        loop {
            while next < self.pieces.len()
                && let Some(slot) = free.pop()
            {
                let Piece { request, range, .. } = &self.pieces[next];
                let offset = self.requests[*request].offset + range.start as u64;
                if !ring.queue(self.file, offset, slot, range.len()) {
                    free.push(slot);
                    break;
                }
                holds[slot] = next;
                next += 1;
            }
            if ring.busy() == 0 {
                return Ok(());
            }
            let waited = ring.wait();
            idle += 1;
            match waited {
                Err(error) if !is_passing(&error) || idle > ATTEMPTS => return Err(error),
                Err(_) => std::thread::yield_now(),
                Ok(()) => {}
            }
            while let Some(done) = ring.done() {
                idle = 0;
                self.take(ring, holds[done.slot], &done);
                free.push(done.slot);
            }
        }
    }

    fn take(&mut self, ring: &mut Ring, piece: usize, done: &Done) {
        let Piece {
            request,
            range,
            done: whole,
        } = &mut self.pieces[piece];
        if usize::try_from(done.result) == Ok(range.len())
            && let Some(bytes) = ring.bytes(done.slot)
        {
            let into = &mut self.requests[*request].buf[range.clone()];
            into.copy_from_slice(&bytes[..range.len()]);
            *whole = true;
        }
    }

    /// Reads the rest: what was short, failed, or never came to its turn. The plain read tells why.
    fn finish(self, transfers: &Transfers) -> Result<(), (usize, Cause)> {
        for Piece { request, range, .. } in self.pieces.into_iter().filter(|it| !it.done) {
            let offset = self.requests[request].offset + range.start as u64;
            let buf = &mut self.requests[request].buf[range];
            transfers
                .read(self.file, offset, buf)
                .map_err(|cause| (request, cause))?;
        }
        Ok(())
    }
}

/// An interruption, or a kernel that has to be relieved of completions first.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN | rustix::io::Errno::BUSY)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_kernel_that_makes_no_ring_is_asked_once_and_the_batch_is_read_all_the_same() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        // No kernel makes a ring for nothing.
        let rings = Rings {
            depth: 0,
            ..Rings::new(512)
        };
        assert!(rings.usable());
        let mut buf = [0; 8192];
        let mut requests = [ReadRequest::new(0, &mut buf)];
        rings
            .read(&file, &Transfers::buffered(512, false), &mut requests)
            .unwrap();
        assert!(!rings.usable());
        assert_eq!(buf, [7; 8192]);
    }

    #[test]
    fn what_lies_past_the_end_is_told_of_the_request_that_asked() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let rings = Rings::new(512);
        let mut bufs = [[0; 4096]; 3];
        let mut requests: Vec<_> = bufs
            .iter_mut()
            .zip([0, 4096, 8192])
            .map(|(buf, at)| ReadRequest::new(at, buf))
            .collect();
        let failed = rings.read(&file, &Transfers::buffered(512, false), &mut requests);
        assert_eq!(failed, Err((2, Cause::Truncated { end: 8192 })));
        assert_eq!(bufs[..2], [[7; 4096]; 2]);
    }
}
