//! What a file shows: its bytes, and where there are some.

use holdfast_core::store::SpaceRun;

use super::super::page::{Changed, zeros};
use super::{BLOCK_LEN, Content, Form, Source};
use crate::Result;

impl Content {
    /// Reads bytes; holes and what lies beyond the end read as zeros.
    pub(in super::super) fn read(
        &self,
        offset: u64,
        buf: &mut [u8],
        source: &dyn Source,
    ) -> Result<()> {
        buf.fill(0);
        let end = (offset + buf.len() as u64).min(self.len);
        if offset >= end {
            return Ok(());
        }
        let (mapping, dirty) = match &self.form {
            Form::Inline(bytes) => {
                let part = &bytes[offset as usize..end as usize];
                buf[..part.len()].copy_from_slice(part);
                return Ok(());
            }
            Form::Mapped { mapping, dirty } => (mapping, dirty),
        };
        let mut scratch = zeros();
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
                let to = (done + bytes - offset) as usize;
                source.read_row(run.extent.start, &mut buf[(done - offset) as usize..to])?;
                done += bytes;
                continue;
            }
            let (from, to) = (done, end.min(start + BLOCK_LEN));
            done = to;
            let changed = dirty.get(block);
            let range = (from - start) as usize..(to - start) as usize;
            let part = &mut buf[(from - offset) as usize..(to - offset) as usize];
            // What is nowhere is zero, as `part` is.
            if !changed.is_some_and(Changed::is_whole)
                && let Some(run) = mapping.find(block).filter(|run| !run.unwritten)
            {
                source.read(run.extent.start, &mut scratch)?;
                part.copy_from_slice(&scratch[range.clone()]);
            }
            if let Some(changed) = changed {
                changed.show_range(range.start, part);
            }
        }
        Ok(())
    }

    /// The first run of bytes at or after `offset` that is data, as (start, length).
    pub(in super::super) fn next_data(&self, offset: u64) -> Option<(u64, u64)> {
        if offset >= self.len {
            return None;
        }
        let (mapping, dirty) = match &self.form {
            Form::Inline(_) => return Some((offset, self.len - offset)),
            Form::Mapped { mapping, dirty } => (mapping, dirty),
        };
        let first = offset / BLOCK_LEN;
        let page = dirty.next(first).map(|at| (at, 1));
        let run = std::iter::successors(mapping.next(first), |(at, run)| {
            mapping.next(at + run.extent.length)
        })
        .find(|(_, run)| !run.unwritten)
        .map(|(at, run)| (at, run.extent.length));
        let (at, blocks) = match (page, run) {
            (Some(page), Some(run)) => page.min(run),
            (page, run) => page.or(run)?,
        };
        let start = (at * BLOCK_LEN).max(offset);
        let end = ((at + blocks) * BLOCK_LEN).min(self.len);
        (start < end).then(|| (start, end - start))
    }

    /// The first run of bytes at or after `offset` that takes space.
    pub(in super::super) fn next_space(&self, offset: u64) -> Option<SpaceRun> {
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
