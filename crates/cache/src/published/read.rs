//! Reading: without the lock, and under it.
//!
//! A read collects the frames it needs, then the size, and then asks whether all that was one
//! state; only then it copies, because frames do not change. So what can make it try again is a
//! change within the few nanoseconds of collecting, and nothing is copied in vain.

use super::pieces::Piece;
use super::{PAGE_SHIFT, Pages, PagesLock};
use crate::{MAX_SIZE, PAGE_SIZE};
use holdfast_sync::epoch::{self, Guard};
use std::fmt;

/// Changes came in the way of a read each time it was tried: read under the lock instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contended;

impl fmt::Display for Contended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pages are being changed")
    }
}

impl std::error::Error for Contended {}

/// Tries before a read gives up.
const TRIES: u32 = 6;

/// Frames that a read collects without memory of its own: 32 KiB at any offset.
const FEW: usize = 9;

impl Pages {
    /// Reads into `buf` from `offset` on, without a lock; returns the bytes read: fewer than asked
    /// for only at the end of the file. Holes read as zeros. Bytes and size are those of one
    /// moment between call and return. Of `buf` only the bytes read are written.
    ///
    /// `size` loads the size of the file and may be called more than once; it must not wait for
    /// anything.
    ///
    /// # Errors
    /// [`Contended`] if changes came in between; [`PagesLock::read`] does not mind them.
    #[inline]
    pub fn read_with(
        &self,
        offset: u64,
        buf: &mut [u8],
        size: impl Fn() -> u64,
    ) -> Result<usize, Contended> {
        self.read_under(&epoch::pin(), offset, buf, size)
    }

    /// [`read_with`](Self::read_with) for a caller who is pinned already.
    ///
    /// # Errors
    /// Those of `read_with`.
    #[inline]
    pub fn read_under(
        &self,
        guard: &Guard,
        offset: u64,
        buf: &mut [u8],
        size: impl Fn() -> u64,
    ) -> Result<usize, Contended> {
        if offset >= MAX_SIZE {
            return Ok(0);
        }
        let at = offset as usize % PAGE_SIZE;
        for _ in 0..TRIES {
            let done = if at + buf.len() <= PAGE_SIZE {
                self.try_one(guard, offset, buf, &size)
            } else if at + buf.len() <= FEW * PAGE_SIZE {
                self.try_many(guard, offset, buf, &size, &mut [None; FEW])
            } else {
                // Should the file grow until the size is loaded again, then that was too few.
                let len = size().saturating_sub(offset).min(buf.len() as u64);
                let pages = (at + len as usize).div_ceil(PAGE_SIZE);
                self.try_many(guard, offset, buf, &size, &mut vec![None; pages])
            };
            if let Some(read) = done {
                return Ok(read);
            }
            std::hint::spin_loop();
        }
        Err(Contended)
    }

    /// A read within one page.
    #[inline]
    fn try_one(
        &self,
        guard: &Guard,
        offset: u64,
        buf: &mut [u8],
        size: &impl Fn() -> u64,
    ) -> Option<usize> {
        let snapshot = self.frames.snapshot(guard)?;
        let frame = snapshot.get(offset >> PAGE_SHIFT);
        let size = size();
        if !snapshot.holds() {
            return None;
        }
        let len = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        copy_out(frame, offset as usize % PAGE_SIZE, &mut buf[..len]);
        Some(len)
    }

    /// A read of several pages, whose frames are collected in `frames`.
    fn try_many<'g>(
        &'g self,
        guard: &'g Guard,
        offset: u64,
        buf: &mut [u8],
        size: &impl Fn() -> u64,
        frames: &mut [Option<&'g [u8]>],
    ) -> Option<usize> {
        let snapshot = self.frames.snapshot(guard)?;
        let size = size();
        let len = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        let at = offset as usize % PAGE_SIZE;
        let frames = frames.get_mut(..(at + len).div_ceil(PAGE_SIZE))?;
        for (page, frame) in (offset >> PAGE_SHIFT..).zip(frames.iter_mut()) {
            *frame = snapshot.get(page);
        }
        if !snapshot.holds() {
            return None;
        }
        let (mut rest, mut at) = (&mut buf[..len], at);
        for frame in frames {
            let now = rest.len().min(PAGE_SIZE - at);
            let (now, later) = rest.split_at_mut(now);
            copy_out(*frame, at, now);
            (rest, at) = (later, 0);
        }
        Some(len)
    }
}

/// Copies from byte `at` of a page on, as far as `buf` goes.
#[inline]
fn copy_out(frame: Option<&[u8]>, at: usize, buf: &mut [u8]) {
    let filled = frame.and_then(|frame| frame.get(at..)).unwrap_or_default();
    let len = filled.len().min(buf.len());
    let (data, zeros) = buf.split_at_mut(len);
    data.copy_from_slice(&filled[..len]);
    if !zeros.is_empty() {
        zeros.fill(0);
    }
}

impl PagesLock<'_> {
    /// Reads into `buf` from `offset` on, for a file of `size` bytes; returns the bytes read:
    /// fewer than asked for only at the end of the file. Holes read as zeros.
    #[must_use]
    pub fn read(&self, offset: u64, buf: &mut [u8], size: u64) -> usize {
        let len = size.saturating_sub(offset).min(buf.len() as u64);
        let mut rest = &mut buf[..len as usize];
        for piece in self.pieces(offset, offset + len) {
            let (now, later) = rest.split_at_mut(piece.len() as usize);
            match piece {
                Piece::Data(data) => now.copy_from_slice(data),
                Piece::Zero(_) => now.fill(0),
            }
            rest = later;
        }
        len as usize
    }
}
