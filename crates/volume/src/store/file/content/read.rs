//! Reading a file's bytes and its allocation.
//!
//! A read has two steps, as no thread waits for a device under a shard's lock: first the bytes in
//! memory, then the others.

use holdfast_core::store::SpaceRun;

use super::{BLOCK_LEN, Content, Form};
use crate::store::file::page::Changed;
use crate::store::file::source::MissingRange;
#[cfg(test)]
use crate::{error::Result, store::file::source::Source};

impl Content {
    /// Reads what is in memory: holes, and bytes beyond the end, are zeros. Returns what is [still
    /// missing](MissingRange::fill).
    pub(in crate::store) fn begin_read(&self, offset: u64, buf: &mut [u8]) -> Vec<MissingRange> {
        let mut missing = Vec::new();
        buf.fill(0);
        let end = (offset + buf.len() as u64).min(self.len);
        if offset >= end {
            return missing;
        }
        let (mapping, dirty) = match &self.form {
            Form::Inline(bytes) => {
                let part = &bytes[offset as usize..end as usize];
                buf[..part.len()].copy_from_slice(part);
                return missing;
            }
            Form::Mapped { mapping, dirty } => (mapping, dirty),
        };
        let mut done = offset;
        while done < end {
            let block = done / BLOCK_LEN;
            let start = block * BLOCK_LEN;
            // A run of whole clean blocks that is contiguous on the device.
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
                missing.push(MissingRange {
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
                missing.push(MissingRange {
                    into,
                    block: run.extent.start,
                    skip,
                    over: changed.cloned(),
                });
            } else if let Some(changed) = changed {
                // Bytes that are neither dirty nor allocated are zeros, as the buffer is.
                changed.show_range(skip, &mut buf[into]);
            }
        }
        missing
    }

    /// Reads bytes, including the missing ones.
    #[cfg(test)]
    pub(in crate::store) fn read(
        &self,
        offset: u64,
        buf: &mut [u8],
        source: &dyn Source,
    ) -> Result<()> {
        let missing = self.begin_read(offset, buf);
        missing.iter().try_for_each(|it| it.fill(buf, source))
    }

    /// Allocated blocks, plus dirty pages that will be.
    pub(in crate::store) fn blocks(&self) -> u64 {
        match &self.form {
            Form::Inline(bytes) => (bytes.len() as u64).div_ceil(BLOCK_LEN),
            Form::Mapped { mapping, dirty } => {
                let waiting = dirty.numbers().filter(|at| mapping.find(*at).is_none());
                mapping.blocks() + waiting.count() as u64
            }
        }
    }

    /// The first allocated run of bytes at or after `offset`.
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
                // A dirty page over an unwritten run counts as written.
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
