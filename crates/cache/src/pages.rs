use crate::account::{Account, Held, Reservation};
use crate::chunk::{CHUNK_SHIFT, CHUNK_SIZE, bits, mask};
use crate::frame::{PAGE_SHIFT, PAGE_SIZE, SmallFrame};
use crate::pieces::{Piece, Pieces};
use crate::root::{PAGE_END, Root};
use holdfast_types::{Errno, Result};
use std::fmt;

mod copy;
mod fallocate;
mod seek;
#[cfg(test)]
mod tests;

/// Largest size of a file, hence one more than the offset of the last byte: `i64::MAX`.
pub const MAX_SIZE: u64 = i64::MAX.cast_unsigned();

/// The cached content of one regular file.
///
/// A page is a hole (reads zero, costs nothing), unwritten (allocated: reads zero, counts as
/// space, but seeks take it for a hole) or framed (has bytes in memory). The size of the file is
/// not kept here. The owner must see to two things:
///
/// - When a file shrinks *or is set to the size it has*, call [`truncate`](Self::truncate), which
///   zeroes the rest of the last page: bytes behind the end are zero at all times, so that a
///   file can grow by merely changing its size.
/// - Call [`clear`](Self::clear) before dropping, with the account that was always used, or
///   [`abandon`](Self::abandon) if that account is going away as well. A `Pages` that is dropped
///   while it holds anything panics, because space would be lost silently; it does not carry a
///   reference to its account, since that would make every empty file larger.
///
/// An empty one is 16 bytes and has no heap; a file that fits one page has one allocation of 64 to
/// 4096 bytes.
pub struct Pages {
    root: Root,
}

/// A change in progress. When it ends, in whichever way, the account is settled by comparing
/// what is held with what was held: no operation adjusts a counter by hand.
struct Change<'a> {
    root: &'a mut Root,
    account: Account<'a>,
    reservation: Reservation<'a>,
    before: Held,
}

impl<'a> Change<'a> {
    fn new(pages: &'a mut Pages, account: Account<'a>) -> Self {
        let before = pages.root.held();
        let nothing = Reservation::none(account.space);
        Self {
            root: &mut pages.root,
            account,
            reservation: nothing,
            before,
        }
    }

    /// Promises as many of `pages` as there is room for; with fewer, says why.
    fn reserve_up_to(&mut self, pages: u64) -> (u64, Option<Errno>) {
        if self.reservation.grow(pages).is_ok() {
            return (pages, None);
        }
        for had in 0..pages {
            if let Err(errno) = self.reservation.grow(1) {
                return (had, Some(errno));
            }
        }
        (pages, None)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.root.normalise();
        let after = self.root.held();
        self.account.stats.settle(self.before, after);
        self.reservation.take_back(self.before.pages);
        self.reservation.place(after.pages);
    }
}

impl Pages {
    /// No content: every page is a hole.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: Root::Empty }
    }

    /// Are all pages holes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.root, Root::Empty)
    }

    /// Pages of space held, framed or unwritten; `st_blocks` is eight times that.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.root.held().pages
    }

    /// Pages that have a frame in memory.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.root.held().frames
    }

    /// Bytes of memory held, tables included, the 16 bytes of the value itself not.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.root.held().bytes
    }

    /// The content from `offset` up to `end`, piece by piece, without copying.
    #[must_use]
    pub fn pieces(&self, offset: u64, end: u64) -> Pieces<'_> {
        Pieces::new(&self.root, offset, end.min(MAX_SIZE))
    }

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

    /// Writes `data` at `offset` and returns the bytes written: fewer than given when space ran
    /// out on the way, or at [`MAX_SIZE`]. The owner raises the file's size accordingly.
    ///
    /// # Errors
    /// If nothing could be written: `EFBIG` at `MAX_SIZE`, or what the space said (`ENOSPC`).
    pub fn write(&mut self, offset: u64, data: &[u8], account: Account<'_>) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        if offset >= MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        let data = &data[..(data.len() as u64).min(MAX_SIZE - offset) as usize];
        let mut change = Change::new(self, account);
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let room = CHUNK_SIZE - at % CHUNK_SIZE;
            let step = &data[done..];
            let step = &step[..(step.len() as u64).min(room) as usize];
            match change.write_in_chunk(at, step) {
                Ok(written) => {
                    done += written;
                    if written < step.len() {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Drops everything from `new_size` on: pages behind it become holes, the rest of its last
    /// page becomes zero. Costs what is held there, not what it spans.
    pub fn truncate(&mut self, new_size: u64, account: Account<'_>) {
        if self.is_empty() {
            return;
        }
        let change = Change::new(self, account);
        let first_gone = new_size.min(MAX_SIZE).div_ceil(PAGE_SIZE as u64);
        change.root.remove(first_gone..PAGE_END);
        change.root.normalise();
        let tail = (new_size % PAGE_SIZE as u64) as usize;
        if tail == 0 || new_size > MAX_SIZE {
            return;
        }
        match &mut *change.root {
            Root::Small(small) if new_size < PAGE_SIZE as u64 => small.truncate(tail),
            root => zero_in_page(root, new_size >> PAGE_SHIFT, tail..PAGE_SIZE),
        }
    }

    /// Drops everything and settles the account: then the value may be dropped, or used again.
    pub fn clear(&mut self, account: Account<'_>) {
        if self.is_empty() {
            return;
        }
        let change = Change::new(self, account);
        *change.root = Root::Empty;
    }

    /// Drops everything without an account, for an owner whose account ends with it.
    pub fn abandon(&mut self) {
        self.root = Root::Empty;
    }
}

impl Change<'_> {
    /// Writes `data`, which must not leave the chunk of `offset`; short if there is no space.
    fn write_in_chunk(&mut self, offset: u64, data: &[u8]) -> Result<usize> {
        let end = offset + data.len() as u64;
        if end <= PAGE_SIZE as u64 && matches!(self.root, Root::Empty | Root::Small(_)) {
            return self.write_small(offset as usize, data);
        }
        let chunk = offset / CHUNK_SIZE;
        let start = chunk * CHUNK_SIZE;
        let pages = (offset - start) >> PAGE_SHIFT..(end - start).div_ceil(PAGE_SIZE as u64);
        let unwritten = self.root.unwritten_mask(chunk);
        let missing = mask(pages) & !self.root.present(chunk) & !unwritten;
        let (promised, refused) = self.reserve_up_to(u64::from(missing.count_ones()));
        let mut data = data;
        if let Some(errno) = refused {
            let stop = bits(missing).nth(promised as usize).map_or(end, |bit| {
                (start + (u64::from(bit) << PAGE_SHIFT)).max(offset)
            });
            if stop == offset {
                return Err(errno);
            }
            data = &data[..(stop - offset) as usize];
        }
        self.root
            .with_chunk(chunk, |chunk| chunk.write((offset - start) as usize, data));
        if unwritten != 0 {
            let end = (offset + data.len() as u64).div_ceil(PAGE_SIZE as u64);
            self.root.remove_unwritten(offset >> PAGE_SHIFT..end);
        }
        debug_assert!(chunk << CHUNK_SHIFT < PAGE_END);
        Ok(data.len())
    }

    /// Writes within the first page of a file that has no other.
    fn write_small(&mut self, offset: usize, data: &[u8]) -> Result<usize> {
        if let Root::Small(small) = self.root {
            small.write(offset, data);
        } else {
            self.reservation.grow(1)?;
            *self.root = Root::Small(SmallFrame::new(offset, data));
        }
        Ok(data.len())
    }
}

/// Zeroes part of a page, if it has a frame.
fn zero_in_page(root: &mut Root, page: u64, bytes: std::ops::Range<usize>) {
    if let Some(frame) = root.frame_mut(page) {
        let end = bytes.end.min(frame.len());
        frame[bytes.start.min(end)..end].fill(0);
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        assert!(
            self.is_empty() || std::thread::panicking(),
            "pages dropped without giving back {} pages of space",
            self.pages(),
        );
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("held", &self.root.held())
            .finish()
    }
}
