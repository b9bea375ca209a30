//! What a file shows: its bytes, and where there are some.
//!
//! Bytes are read in two steps, because nobody waits for a device where content is looked at: first those that are in
//! memory, then the others.

use std::ops::Range;

use holdfast_core::store::SpaceRun;

use super::{BLOCK_LEN, Content, Form, Source};
use crate::store::file::page::{Changed, zeros};
use crate::{BLOCK, Result};

/// Bytes of a file that are not in memory.
#[derive(Debug)]
pub(in crate::store) struct Absent {
    /// Where they go in the buffer of the reader.
    into: Range<usize>,
    /// The block on the device in which they begin, and how far in.
    block: u64,
    skip: usize,
    /// What has changed of that block, if that is not all of it: then they are of this block alone.
    over: Option<Changed>,
}

impl Absent {
    /// Reads them.
    ///
    /// # Errors
    /// Those of the device.
    pub(in crate::store) fn fill(&self, buf: &mut [u8], source: &dyn Source) -> Result<()> {
        let part = &mut buf[self.into.clone()];
        if self.skip == 0 && part.len().is_multiple_of(BLOCK) && self.over.is_none() {
            return source.read_row(self.block, part);
        }
        let mut page = zeros();
        source.read(self.block, &mut page)?;
        part.copy_from_slice(&page[self.skip..self.skip + part.len()]);
        if let Some(over) = &self.over {
            over.show_range(self.skip, part);
        }
        Ok(())
    }
}

impl Content {
    /// Begins to read bytes: holes and what lies beyond the end read as zeros; gives those that are
    /// [to be filled in](Absent::fill).
    pub(in crate::store) fn begin_read(&self, offset: u64, buf: &mut [u8]) -> Vec<Absent> {
        let mut absent = Vec::new();
        buf.fill(0);
        let end = (offset + buf.len() as u64).min(self.len);
        if offset >= end {
            return absent;
        }
        let (mapping, dirty) = match &self.form {
            Form::Inline(bytes) => {
                let part = &bytes[offset as usize..end as usize];
                buf[..part.len()].copy_from_slice(part);
                return absent;
            }
            Form::Mapped { mapping, dirty } => (mapping, dirty),
        };
        let mut done = offset;
        while done < end {
            let block = done / BLOCK_LEN;
            let start = block * BLOCK_LEN;
            // As many whole blocks as lie side by side on the device, and nothing of them has changed.
            let whole = dirty
                .next(block)
                .map_or(end, |dirty| dirty * BLOCK_LEN)
                .min(end);
            let row = whole.saturating_sub(done) / BLOCK_LEN;
            if done == start
                && row > 0
                && let Some(run) = mapping.find(block).filter(|run| !run.unwritten)
            {
                let bytes = row.min(run.extent.length) * BLOCK_LEN;
                absent.push(Absent {
                    into: (done - offset) as usize..(done + bytes - offset) as usize,
                    block: run.extent.start,
                    skip: 0,
                    over: None,
                });
                done += bytes;
                continue;
            }
            let (from, to) = (done, end.min(start + BLOCK_LEN));
            done = to;
            let changed = dirty.get(block);
            let skip = (from - start) as usize;
            let into = (from - offset) as usize..(to - offset) as usize;
            if !changed.is_some_and(Changed::is_whole)
                && let Some(run) = mapping.find(block).filter(|run| !run.unwritten)
            {
                absent.push(Absent {
                    into,
                    block: run.extent.start,
                    skip,
                    over: changed.cloned(),
                });
            } else if let Some(changed) = changed {
                // What is nowhere is zero, as the buffer is.
                changed.show_range(skip, &mut buf[into]);
            }
        }
        absent
    }

    /// Reads bytes, where it does not matter who waits.
    #[cfg(test)]
    pub(in crate::store) fn read(
        &self,
        offset: u64,
        buf: &mut [u8],
        source: &dyn Source,
    ) -> Result<()> {
        let absent = self.begin_read(offset, buf);
        absent.iter().try_for_each(|it| it.fill(buf, source))
    }

    /// How many blocks it takes, with those that wait for a place.
    pub(in crate::store) fn blocks(&self) -> u64 {
        match &self.form {
            Form::Inline(bytes) => (bytes.len() as u64).div_ceil(BLOCK_LEN),
            Form::Mapped { mapping, dirty } => {
                let mut forwards = mapping.forwards();
                let mut is_bare = |at: &u64| forwards.next(*at).is_none_or(|(next, _)| next != *at);
                let waiting = dirty.within(0..u64::MAX).filter(|at| is_bare(at));
                mapping.blocks() + waiting.count() as u64
            }
        }
    }

    /// The first run of bytes at or after `offset` that takes space.
    pub(in crate::store) fn next_space(&self, offset: u64) -> Option<SpaceRun> {
        let (mapping, dirty) = match &self.form {
            Form::Inline(_) => {
                return (offset < self.len).then(|| SpaceRun {
                    start: offset,
                    len: self.len - offset,
                    written: true,
                });
            }
            Form::Mapped { mapping, dirty } => (mapping, dirty),
        };
        let first = offset / BLOCK_LEN;
        let page = dirty.next(first);
        let (at, blocks, written) = match (page, mapping.next(first)) {
            (Some(page), run) if run.is_none_or(|(at, _)| page <= at) => (page, 1, true),
            (page, run) => {
                let (at, run) = run?;
                let blocks = run.extent.length;
                // What waits to be written there is written.
                let blocks = page.map_or(blocks, |page| blocks.min(page - at));
                (at, blocks, !run.unwritten)
            }
        };
        let start = (at * BLOCK_LEN).max(offset);
        let len = (at + blocks) * BLOCK_LEN - start;
        Some(SpaceRun {
            start,
            len,
            written,
        })
    }
}
