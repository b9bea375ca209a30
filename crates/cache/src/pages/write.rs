//! Writing.

use super::change::Change;
use super::content::PagesLock;
use crate::account::Account;
use crate::frame::Frame;
use crate::frame::bits::{bits, mask};
use crate::sizes::{GROUP_PAGES, GROUP_SIZE, MAX_SIZE, PAGE_SHIFT, PAGE_SIZE};
use holdfast_types::{Errno, Result};

/// In a group with so many pages in memory, a page that is written is likely to be written again.
const FEW_PAGES: u32 = 7;

impl PagesLock<'_> {
    /// Writes `data` at `offset` and returns the bytes written, which are fewer than given when
    /// space runs out, or at [`MAX_SIZE`]. The owner raises the file's size accordingly, after this
    /// and before dropping the lock.
    ///
    /// Readers see it together with everything else done under this lock. If it is the only change,
    /// [`write_alone`](Self::write_alone) does not hold them up.
    ///
    /// # Errors
    /// If nothing could be written: `EFBIG` at `MAX_SIZE`, or that of the space (`ENOSPC`).
    pub fn write(&mut self, offset: u64, data: &[u8], account: Account<'_>) -> Result<usize> {
        if !data.is_empty() {
            self.begin();
        }
        self.write_shown(offset, data, account)
    }

    /// As [`write`](Self::write) into a file of `size` bytes, as the only change under this lock.
    /// The size may change too, and further writes at or after `size` may follow (an append of
    /// several pieces). A write within a page, or after the end, needs one store only and does not
    /// hold readers up.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write_alone(
        &mut self,
        offset: u64,
        data: &[u8],
        size: u64,
        account: Account<'_>,
    ) -> Result<usize> {
        let last = offset.saturating_add(data.len().saturating_sub(1) as u64);
        let in_one_page = offset >> PAGE_SHIFT == last >> PAGE_SHIFT;
        // Bytes after the end become visible with the size. Before it, one page is one store; but a
        // write across the end would become visible in part.
        let at_once = offset >= size || (last < size && in_one_page);
        if !at_once && !data.is_empty() {
            self.begin();
        }
        self.write_shown(offset, data, account)
    }

    /// Fills absent pages: whole pages from `offset` on, except the file's last.
    ///
    /// # Errors
    /// That of the space for pages that are not absent, but holes. Absent pages have their space.
    pub fn populate(&mut self, offset: u64, data: &[u8], account: Account<'_>) -> Result<()> {
        debug_assert!(offset.is_multiple_of(PAGE_SIZE as u64), "a part of a page");
        self.begin();
        Change::new(self, account)
            .write_shown(offset, data)
            .map(drop)
    }

    fn write_shown(&mut self, offset: u64, data: &[u8], account: Account<'_>) -> Result<usize> {
        hop!();
        if data.is_empty() {
            return Ok(0);
        }
        if offset >= MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        let data = &data[..(data.len() as u64).min(MAX_SIZE - offset) as usize];
        debug_assert!(
            self.has_edges(offset, offset + data.len() as u64),
            "a part of an absent page is written"
        );
        let at = (offset % PAGE_SIZE as u64) as usize;
        // Filling more of a frame takes neither space nor memory: the account does not change.
        if at + data.len() <= PAGE_SIZE && self.frames.extend(offset >> PAGE_SHIFT, at, data) {
            return Ok(data.len());
        }
        Change::new(self, account).write_shown(offset, data)
    }

    /// Are the pages at the edges of these bytes not absent, as far as they are written in part?
    fn has_edges(&self, offset: u64, end: u64) -> bool {
        let page = PAGE_SIZE as u64;
        [offset, end].into_iter().all(|edge| {
            let at = edge >> PAGE_SHIFT;
            edge.is_multiple_of(page) || self.next_unloaded(at..at + 1).is_none()
        })
    }

    /// Writes within one page. `alone`: few pages around it are in memory, so it may stay small.
    fn write_in_page(&mut self, page: u64, at: usize, data: &[u8], alone: bool) {
        if self.frames.extend(page, at, data) {
            return;
        }
        let end = at + data.len();
        let only = page == 0 && self.frames.is_small();
        let frame = match self.frames.get(page) {
            Some(stored) => {
                let old = stored.bytes();
                // A page that outgrows its frame will grow on, so it gets a whole one.
                let fits = end <= stored.capacity();
                let mut frame = Frame::with_capacity(match only {
                    true => stored.capacity().max(end),
                    false if fits => stored.capacity(),
                    false => PAGE_SIZE,
                });
                frame.push(&old[..at.min(old.len())]);
                frame.put(at, data);
                if end < old.len() {
                    frame.push(&old[end..]);
                }
                frame
            }
            None => {
                let mut frame = Frame::with_capacity(if only || alone { end } else { PAGE_SIZE });
                frame.put(at, data);
                frame
            }
        };
        self.frames.put(page, frame);
    }
}

impl Change<'_, '_> {
    /// Writes group by group; returns early if space runs out.
    fn write_shown(&mut self, offset: u64, data: &[u8]) -> Result<usize> {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let now = (GROUP_SIZE - at % GROUP_SIZE).min((data.len() - done) as u64) as usize;
            match self.write_in_group(at, &data[done..done + now]) {
                Ok(written) => {
                    done += written;
                    if written < now {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes `data`, which must not leave the group of `offset`; returns early if there is no
    /// space.
    fn write_in_group(&mut self, offset: u64, data: &[u8]) -> Result<usize> {
        hop!();
        let end = offset + data.len() as u64;
        let group = offset / GROUP_SIZE;
        let start = group * GROUP_SIZE;
        let pages = (offset - start) >> PAGE_SHIFT..(end - start).div_ceil(PAGE_SIZE as u64);
        debug_assert!(pages.end <= GROUP_PAGES);
        let unwritten = self.pages.unframed_mask(group);
        let there = self.pages.frames.mask(group);
        let missing = mask(pages) & !there & !unwritten;
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
        self.write_pages(offset, data, there);
        if unwritten != 0 {
            let end = (offset + data.len() as u64).div_ceil(PAGE_SIZE as u64);
            self.pages.remove_unframed(offset >> PAGE_SHIFT..end);
        }
        Ok(data.len())
    }

    /// Writes page by page; space is reserved for all of them. `there`: a bit for each page of the
    /// group that has a frame.
    fn write_pages(&mut self, offset: u64, data: &[u8], there: u64) {
        let (mut offset, mut data) = (offset, data);
        while !data.is_empty() {
            let at = (offset % PAGE_SIZE as u64) as usize;
            let (now, later) = data.split_at(data.len().min(PAGE_SIZE - at));
            let page = offset >> PAGE_SHIFT;
            let bit = 1_u64 << (page % GROUP_PAGES);
            let alone = there & (bit << 1 | bit >> 1) == 0 && there.count_ones() < FEW_PAGES;
            self.pages.write_in_page(page, at, now, alone);
            offset += now.len() as u64;
            data = later;
        }
    }
}
