//! The places of a file's blocks on the device: those that are missing, those that come and go.

use std::ops::Range;

use super::super::mapping::{Mapping, Run};
use super::super::outgoing::Outgoing;
use super::super::placing::{Waiting, missing};
use super::{BLOCK_LEN, Content, Form, touched, whole};
use crate::Result;
use crate::space::{Extent, FileRequest};

impl Content {
    /// Blocks of a range of bytes without a place, as ranges of blocks.
    pub(in super::super) fn holes(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
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
            // A page that waits gets its place when it is written.
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

    /// What is asked for blocks without a place, from `first` on.
    pub(in super::super) fn missing(&self, first: u64, blocks: u64) -> FileRequest {
        let size = self.len.div_ceil(BLOCK_LEN);
        match &self.form {
            Form::Inline(_) => missing(&Mapping::default(), first, blocks, size),
            Form::Mapped { mapping, .. } => missing(mapping, first, blocks, size),
        }
    }

    /// Gives blocks a place; returns what they had before. What waited to be written there is there.
    pub(in super::super) fn map(&mut self, at: u64, run: Run) -> Vec<Run> {
        self.become_mapped();
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Vec::new();
        };
        if !run.unwritten {
            let end = at + run.extent.length;
            dirty.remove(at..end);
        }
        let before = mapping.map(at, run);
        // The same place again is none to give back.
        let elsewhere = |old: &Run| !old.extent.overlaps(&run.extent);
        before.into_iter().filter(elsewhere).collect()
    }

    /// The parts of a run that these blocks do not have as their place already.
    pub(in super::super) fn parts_elsewhere(&self, at: u64, run: Run) -> Vec<Extent> {
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

    /// Removes a range of whole blocks; what follows moves down. Returns the places of the range.
    pub(in super::super) fn collapse(&mut self, range: Range<u64>) -> Vec<Run> {
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

    /// Opens a hole of whole blocks; what follows moves up.
    pub(in super::super) fn insert(&mut self, offset: u64, len: u64) {
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

    /// Takes the pages that wait out, each with its place. `place` finds room for what is asked for,
    /// possibly less; `placed` hears of every place that is new or written for the first time. If
    /// there is no room, what has none waits on.
    pub(in super::super) fn take_dirty(
        &mut self,
        place: &mut dyn FnMut(&FileRequest) -> Result<Run>,
        placed: &mut dyn FnMut(u64, Run),
        outgoing: &mut Vec<Outgoing>,
    ) -> Result<()> {
        let size = self.len.div_ceil(BLOCK_LEN);
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Ok(());
        };
        let mut waiting = Waiting::new(dirty.numbers(), size, mapping);
        let mut pages = std::mem::take(dirty).into_iter();
        let mut go = |run: Run, fresh| {
            let pages = pages.by_ref().take(run.extent.length as usize);
            let blocks = (run.extent.start..).zip(pages);
            outgoing.extend(blocks.map(|(block, (_, changed))| Outgoing {
                block,
                changed,
                fresh,
            }));
            run.extent.length as usize
        };
        let (mut done, mut new) = (0, Vec::new());
        let mut missing_room = None;
        while let Some((first, row)) = waiting.row(done) {
            if let Some(mut run) = mapping.find(first) {
                run.extent.length = run.extent.length.min(row);
                let fresh = std::mem::replace(&mut run.unwritten, false);
                if fresh {
                    mapping.map(first, run);
                    placed(first, run);
                }
                done += go(run, fresh);
                continue;
            }
            let request = waiting.request(mapping, done, first, row);
            let rows = waiting.alike(done, &request, mapping);
            let length = rows.iter().map(|(_, row)| row).sum();
            let found = match place(&FileRequest { length, ..request }) {
                Ok(found) => found,
                Err(error) => {
                    missing_room = Some(error);
                    break;
                }
            };
            let mut rest = found.extent;
            for (first, row) in rows {
                let (extent, behind) = rest.split(row.min(rest.length));
                rest = behind;
                if extent.length == 0 {
                    break;
                }
                let unwritten = false;
                let run = Run {
                    extent,
                    unwritten,
                    ..found
                };
                waiting.placed(first, extent);
                new.push((first, run));
                placed(first, run);
                done += go(run, true);
            }
        }
        mapping.fill_all(new);
        dirty.extend(pages);
        missing_room.map_or(Ok(()), Err)
    }
}
