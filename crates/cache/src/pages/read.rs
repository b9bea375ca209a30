//! Reading: without the lock, and under it.
//!
//! A read collects the frames that it needs, then the size, and then checks that all of that was
//! one state. Only then it copies, because frames do not change. So only a change within the few
//! nanoseconds of collecting makes it retry, and nothing is copied in vain.

use super::content::{Pages, PagesLock};
use super::pieces::Piece;
use crate::sizes::{MAX_SIZE, PAGE_SHIFT, PAGE_SIZE};
use holdfast_sync::epoch::{self, Guard};
use std::fmt;
use std::io::IoSliceMut;

/// Changes interfered with each try of a read, or it found a page that may be absent: read under
/// the lock instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contended;

impl fmt::Display for Contended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pages are being changed, or not all in memory")
    }
}

impl std::error::Error for Contended {}

/// The frame that a read within a page found, and the bytes to read.
type InPage<'g> = (Option<&'g [u8]>, usize);

/// Tries before a read gives up.
const TRIES: u32 = 6;

/// The result of `look`, if it sees one state of the pages within a few tries.
pub(super) fn tried<T>(look: impl Fn() -> Option<T>) -> Result<T, Contended> {
    for _ in 0..TRIES {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        std::hint::spin_loop();
    }
    Err(Contended)
}

/// Frames that a read collects without heap memory: 32 KiB at any offset.
const FEW: usize = 9;

impl Pages {
    /// Reads into `buf` from `offset` on, without a lock. Returns the bytes read, which are fewer
    /// than asked for only at the end of the file. Holes read as zeros. Bytes and size are those of
    /// one moment between call and return. Only the bytes read are written to `buf`.
    ///
    /// `size` loads the size of the file, and `whole` whether no page is absent. The owner changes
    /// both under the lock after `begin`. Both may be called more than once, and must not wait for
    /// anything.
    ///
    /// # Errors
    /// [`Contended`] if changes came in between, or a page may be absent; [`PagesLock::read`] works
    /// in these cases.
    #[inline]
    pub fn read_with(
        &self,
        offset: u64,
        buf: &mut [u8],
        size: impl Fn() -> u64,
        whole: impl Fn() -> bool,
    ) -> Result<usize, Contended> {
        if self.read_inside(offset, buf) {
            return Ok(buf.len());
        }
        let guard = epoch::pin();
        let at = offset as usize % PAGE_SIZE;
        if at + buf.len() > PAGE_SIZE {
            let bufs = &mut [IoSliceMut::new(buf)];
            return self.read_vectored_under(&guard, offset, bufs, size, whole);
        }
        for _ in 0..TRIES {
            if let Some(seen) = self.one(&guard, offset, buf.len(), &size, &whole) {
                let (frame, len) = seen?;
                copy_out(frame.unwrap_or_default(), at, &mut buf[..len]);
                return Ok(len);
            }
            std::hint::spin_loop();
        }
        Err(Contended)
    }

    /// Reads bytes that lie within one page, if the page is in memory, known to lie wholly before
    /// the end and not changing, and its use need not be [noted](Self::touch). Otherwise returns
    /// `false` and reads nothing.
    ///
    /// The size of the file is not loaded: writers of other pages change it, or its neighbours.
    #[inline]
    #[must_use]
    pub fn read_inside(&self, offset: u64, buf: &mut [u8]) -> bool {
        let at = offset as usize % PAGE_SIZE;
        if at + buf.len() > PAGE_SIZE {
            return false;
        }
        let guard = epoch::pin();
        // A page without a frame may be absent.
        let found = self.frames.find_inside(offset >> PAGE_SHIFT, &guard);
        found.flatten().is_some_and(|frame| {
            copy_out(frame, at, buf);
            true
        })
    }

    /// As [`read_with`](Self::read_with), into several buffers in turn, all from one state, for a
    /// caller that is pinned.
    ///
    /// # Errors
    /// Those of `read_with`.
    pub fn read_vectored_under(
        &self,
        guard: &Guard,
        offset: u64,
        bufs: &mut [IoSliceMut<'_>],
        size: impl Fn() -> u64,
        whole: impl Fn() -> bool,
    ) -> Result<usize, Contended> {
        let wanted = bufs.iter().fold(0, |sum: u64, buf| sum + buf.len() as u64);
        let wanted = wanted.min(MAX_SIZE.saturating_sub(offset));
        let at = offset as usize % PAGE_SIZE;
        let mut few = [None; FEW];
        let mut many = Vec::new();
        for _ in 0..TRIES {
            let frames = if at as u64 + wanted <= (FEW * PAGE_SIZE) as u64 {
                &mut few[..]
            } else {
                // If the file grows before the size is loaded again, that may be too few.
                let len = size().saturating_sub(offset).min(wanted) as usize;
                many.resize((at + len).div_ceil(PAGE_SIZE), None);
                &mut many[..]
            };
            if let Some(seen) = self.several(guard, offset, wanted, (&size, &whole), frames) {
                let len = seen?;
                scatter(frames, at, len, bufs);
                return Ok(len);
            }
            std::hint::spin_loop();
        }
        Err(Contended)
    }

    /// The frame for a read within one page, and the number of bytes to read.
    #[inline]
    fn one<'g>(
        &'g self,
        guard: &'g Guard,
        offset: u64,
        wanted: usize,
        size: &impl Fn() -> u64,
        whole: &impl Fn() -> bool,
    ) -> Option<Result<InPage<'g>, Contended>> {
        let snapshot = self.frames.snapshot(guard)?;
        let frame = snapshot.get(offset >> PAGE_SHIFT);
        let len = size().saturating_sub(offset).min(wanted as u64) as usize;
        if frame.is_none() && len > 0 && !whole() {
            return Some(Err(Contended));
        }
        snapshot.holds().then_some(Ok((frame, len)))
    }

    /// Collects the frames for a read of several pages; returns the number of bytes to read.
    fn several<'g>(
        &'g self,
        guard: &'g Guard,
        offset: u64,
        wanted: u64,
        (size, whole): (&impl Fn() -> u64, &impl Fn() -> bool),
        frames: &mut [Option<&'g [u8]>],
    ) -> Option<Result<usize, Contended>> {
        let snapshot = self.frames.snapshot(guard)?;
        let len = size().saturating_sub(offset).min(wanted) as usize;
        let pages = (offset as usize % PAGE_SIZE + len).div_ceil(PAGE_SIZE);
        for (page, frame) in (offset >> PAGE_SHIFT..).zip(frames.get_mut(..pages)?) {
            *frame = snapshot.get(page);
        }
        if frames[..pages].contains(&None) && !whole() {
            return Some(Err(Contended));
        }
        snapshot.holds().then_some(Ok(len))
    }
}

/// Copies `len` bytes from byte `at` of the first frame on into buffers with room for them.
fn scatter(frames: &[Option<&[u8]>], at: usize, len: usize, bufs: &mut [IoSliceMut<'_>]) {
    let (mut at, end) = (at, at + len);
    for buf in bufs {
        let mut rest = &mut buf[..];
        while at < end && !rest.is_empty() {
            let (page, from) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let (now, later) = rest.split_at_mut(rest.len().min(PAGE_SIZE - from).min(end - at));
            copy_out(frames[page].unwrap_or_default(), from, now);
            at += now.len();
            rest = later;
        }
    }
}

/// Copies from byte `at` of a page on, up to the length of `buf`.
#[inline]
fn copy_out(frame: &[u8], at: usize, buf: &mut [u8]) {
    match frame.get(at..at + buf.len()) {
        Some(data) => buf.copy_from_slice(data),
        None => copy_and_fill(frame.get(at..).unwrap_or_default(), buf),
    }
}

/// Copies the filled bytes, and zeros after them.
#[inline(never)]
fn copy_and_fill(filled: &[u8], buf: &mut [u8]) {
    let (data, zeros) = buf.split_at_mut(filled.len());
    data.copy_from_slice(filled);
    zeros.fill(0);
}

impl PagesLock<'_> {
    /// Reads into `buf` from `offset` on, for a file of `size` bytes. Returns the bytes read, which
    /// are fewer than asked for only at the end of the file. Holes read as zeros. No page read is
    /// absent.
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
