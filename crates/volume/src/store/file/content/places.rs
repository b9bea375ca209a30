//! Allocating a file's blocks, and moving them.

use std::ops::Range;

use super::{BLOCK_LEN, Content, Form, touched, whole};
use crate::error::Result;
use crate::space::{Extent, FileRequest};
use crate::store::file::delayed_allocation::{BlockAllocator, Waiting, missing};
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::file::page::WriteInFlight;

impl Content {
    /// The unallocated blocks of a byte range.
    pub(in crate::store) fn holes(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        self.become_mapped();
        let Form::Mapped { mapping, dirty } = &self.form else {
            return Vec::new();
        };
        let mut holes: Vec<Range<u64>> = Vec::new();
        let mut at = touched(&range);
        while at.start < at.end {
            let start = at.start;
            if let Some(run) = mapping.find(start) {
                at.start += run.extent.length;
                continue;
            }
            let end = mapping
                .next(start)
                .map_or(at.end, |(next, _)| next.min(at.end));
            at.start = end;
            // A dirty page is allocated when it is written.
            let mut from = start;
            for block in dirty.within(start..end) {
                if from < block {
                    holes.push(from..block);
                }
                from = block + 1;
            }
            if from < end {
                holes.push(from..end);
            }
        }
        holes
    }

    /// The request for unallocated blocks from `first` on.
    pub(in crate::store) fn missing(&self, first: u64, blocks: u64) -> FileRequest {
        let size = self.len.div_ceil(BLOCK_LEN);
        match &self.form {
            Form::Inline(_) => missing(&Mapping::default(), first, blocks, size),
            Form::Mapped { mapping, .. } => missing(mapping, first, blocks, size),
        }
    }

    /// Maps blocks; returns their old extents. Their dirty pages are on the device already.
    pub(in crate::store) fn map(&mut self, at: u64, run: Run) -> Vec<Run> {
        self.become_mapped();
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Vec::new();
        };
        if !run.unwritten {
            let end = at + run.extent.length;
            dirty.remove(at..end);
        }
        let before = mapping.map(at, run);
        // A block that stays where it was is not freed.
        let elsewhere = |old: &Run| !old.extent.overlaps(&run.extent);
        before.into_iter().filter(elsewhere).collect()
    }

    /// The parts of a run that these blocks do not have already.
    pub(in crate::store) fn parts_elsewhere(&self, at: u64, run: Run) -> Vec<Extent> {
        let Some(mapping) = self.mapping() else {
            return vec![run.extent];
        };
        let mut parts = Vec::new();
        let mut skip = 0;
        let mut push = |from: u64, to: u64| {
            if from < to {
                parts.push(Extent::new(run.extent.start + from, to - from));
            }
        };
        for (block, old) in mapping.within(at..at + run.extent.length) {
            let here = block - at;
            if old.extent.start == run.extent.start + here {
                push(skip, here);
                skip = here + old.extent.length;
            }
        }
        push(skip, run.extent.length);
        parts
    }

    /// Removes a range of whole blocks and shifts the rest down. Returns the extents of the range.
    pub(in crate::store) fn collapse(&mut self, range: Range<u64>) -> Vec<Run> {
        self.become_mapped();
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Vec::new();
        };
        let blocks = whole(&range);
        let gone = mapping.unmap(blocks.clone());
        mapping.collapse(blocks.clone());
        dirty.shift(blocks.end, blocks.start);
        self.len = self
            .len
            .saturating_sub(range.end - range.start)
            .max(range.start.min(self.len));
        gone
    }

    /// Inserts a hole of whole blocks and shifts the rest up.
    pub(in crate::store) fn insert(&mut self, offset: u64, len: u64) {
        self.become_mapped();
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return;
        };
        let (at, blocks) = (offset / BLOCK_LEN, len / BLOCK_LEN);
        mapping.insert(at, blocks);
        dirty.shift(at, at + blocks);
        if offset < self.len {
            self.len += len;
        }
    }

    /// Takes all dirty pages, with their blocks. Calls `placed` with each extent that is new or
    /// written for the first time. Without space, unallocated pages stay dirty.
    pub(in crate::store) fn take_dirty(
        &mut self,
        places: &mut dyn BlockAllocator,
        placed: &mut dyn FnMut(u64, Run),
        in_flight: &mut Vec<WriteInFlight>,
    ) -> Result<()> {
        hop!();
        let size = self.len.div_ceil(BLOCK_LEN);
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Ok(());
        };
        let waiting = Waiting::new(dirty.numbers().collect(), size, mapping);
        let (pages, zeroed) = dirty.take();
        let mut pages = pages.into_iter();
        let done = give_places(mapping, waiting, places, &mut |first, mut run| {
            let fresh = std::mem::replace(&mut run.unwritten, false);
            if fresh {
                placed(first, run);
            }
            let pages = pages.by_ref().take(run.extent.length as usize);
            let blocks = (run.extent.start..).zip(pages);
            in_flight.extend(blocks.map(|(block, (_, changed))| WriteInFlight {
                block,
                changed,
                fresh,
                over: !fresh || zeroed.has(block),
            }));
            run
        });
        dirty.extend(pages);
        done
    }
}

/// Allocates blocks for dirty pages. Calls `met` with each row in order, and its run; it returns
/// the run as it is from now on.
fn give_places(
    mapping: &mut Mapping,
    mut waiting: Waiting,
    places: &mut dyn BlockAllocator,
    met: &mut dyn FnMut(u64, Run) -> Run,
) -> Result<()> {
    let mut done = 0;
    while let Some((first, row)) = waiting.row(done) {
        let next = mapping.next(first);
        if let Some((_, mut run)) = next.filter(|(at, _)| *at == first) {
            run.extent.length = run.extent.length.min(row);
            let now = met(first, run);
            if now != run {
                mapping.map(first, now);
            }
            done += run.extent.length as usize;
            continue;
        }
        let bare = next.map_or(row, |(at, _)| row.min(at - first));
        if let Some(run) = places.preallocated(first, bare) {
            mapping.map(first, met(first, run));
            done += run.extent.length as usize;
            continue;
        }
        let request = waiting.request(mapping, done, first, row);
        let rows = waiting.alike(done, &request, mapping);
        let length = rows.iter().map(|(_, row)| row).sum();
        let found = places.find(&FileRequest { length, ..request })?;
        let mut rest = found.extent;
        for (first, row) in rows {
            let (extent, behind) = rest.split(row.min(rest.length));
            rest = behind;
            if extent.length == 0 {
                break;
            }
            let run = Run { extent, ..found };
            mapping.map(first, met(first, run));
            done += extent.length as usize;
        }
    }
    Ok(())
}
