//! The content of one file that changed since the last checkpoint.
//!
//! A short file is kept as bytes (*inline*). A file that outgrows [`INLINE_MAX`] is *mapped*: its
//! blocks have extents, and its dirty pages are kept here until a commit writes them.
//!
//! *Invariants.* Bytes at or beyond `len` never show: pages and the device may hold garbage there,
//! which is zeroed before the file grows over it. No written block lies wholly beyond `len`.
//!
//! *Replay.* The journal has the bytes of inline files only. Those of mapped files are on the
//! device before the replay, as they were at the end of their commit, so pages are not touched.

mod memory;
mod places;
mod read;

use std::ops::Range;

use holdfast_core::store::{PageOf, ShownPage};

use super::dirty_pages::Dirty;
use super::extent_map::{Mapping, Run};
use super::page::{Changed, Page, is_part, zeros};
use super::source::Source;
use crate::block::BLOCK;
use crate::error::Result;

/// Files up to this length are kept inside the trees.
pub const INLINE_MAX: usize = 2048;

const BLOCK_LEN: u64 = BLOCK as u64;

/// A file's changed content, and the extents of the rest.
#[derive(Clone, Debug)]
pub(in crate::store) struct Content {
    len: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Inline(Vec<u8>),
    Mapped { mapping: Mapping, dirty: Dirty },
}

/// The blocks that a byte range touches.
fn touched(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK_LEN..range.end.div_ceil(BLOCK_LEN)
}

/// The blocks that lie wholly in a byte range.
fn whole(range: &Range<u64>) -> Range<u64> {
    let start = range.start.div_ceil(BLOCK_LEN);
    start..(range.end / BLOCK_LEN).max(start)
}

/// The ends of a write at which the rest of the block must be known; 0 for an end at a sector
/// boundary, where it need not.
pub(in crate::store) fn edges_of(bytes: &Range<u64>) -> [u64; 2] {
    let (start, end) = (bytes.start, bytes.end);
    let in_sectors = [start, end].map(|at| is_part(&(at as usize..at as usize)));
    let in_one_block = start / BLOCK_LEN == end / BLOCK_LEN;
    let is_edge = |one: usize| !in_sectors[one] || in_one_block && !in_sectors[1 - one];
    [
        if is_edge(0) { start } else { 0 },
        if is_edge(1) { end } else { 0 },
    ]
}

impl Content {
    /// An inline file.
    pub(in crate::store) fn inline(bytes: Vec<u8>) -> Self {
        Self {
            len: bytes.len() as u64,
            form: Form::Inline(bytes),
        }
    }

    /// A mapped file.
    pub(in crate::store) fn mapped(len: u64, mapping: Mapping) -> Self {
        let dirty = Dirty::default();
        Self {
            len,
            form: Form::Mapped { mapping, dirty },
        }
    }

    /// Adjusts content that was read to the length in newer attributes.
    pub(in crate::store) fn set_len(&mut self, len: u64) {
        // Without a source nothing is read, so this cannot fail; an inline file has no extents to
        // free.
        let _ = self.resize(len, None);
    }

    pub(in crate::store) fn as_inline(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Inline(bytes) => Some(bytes),
            Form::Mapped { .. } => None,
        }
    }

    pub(in crate::store) fn mapping(&self) -> Option<&Mapping> {
        match &self.form {
            Form::Inline(_) => None,
            Form::Mapped { mapping, .. } => Some(mapping),
        }
    }

    /// How many pages are dirty.
    pub(in crate::store) fn dirty(&self) -> usize {
        match &self.form {
            Form::Inline(_) => 0,
            Form::Mapped { dirty, .. } => dirty.len(),
        }
    }

    /// Writes bytes, perhaps beyond the end. `kept`: cached pages that already hold all bytes of
    /// their blocks.
    pub(in crate::store) fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        kept: Option<&PageOf<'_>>,
        source: &dyn Source,
    ) -> Result<()> {
        hop!();
        if data.is_empty() {
            return Ok(());
        }
        let end = offset + data.len() as u64;
        self.grow(end.max(self.len), Some(source))?;
        if let Form::Inline(bytes) = &mut self.form {
            bytes[offset as usize..end as usize].copy_from_slice(data);
            return Ok(());
        }
        for block in touched(&(offset..end)) {
            let start = block * BLOCK_LEN;
            let (from, to) = (offset.max(start), end.min(start + BLOCK_LEN));
            if let Some(page) = kept.and_then(|kept| kept(block))
                && self.keep(block, page)
            {
                continue;
            }
            let part = &data[(from - offset) as usize..(to - offset) as usize];
            let range = (from - start) as usize..(to - start) as usize;
            if part.len() < BLOCK && is_part(&range) {
                self.put_part(block, range.start, part);
            } else {
                let page = self.page(block, part.len() == BLOCK, source)?;
                page[range].copy_from_slice(part);
            }
        }
        Ok(())
    }

    /// Writes whole sectors of a block; the rest of it stays unknown.
    fn put_part(&mut self, block: u64, from: usize, bytes: &[u8]) {
        let Form::Mapped { dirty, .. } = &mut self.form else {
            unreachable!("asked of mapped files only");
        };
        match dirty.get_mut(block) {
            Some(changed) => changed.put(from, bytes),
            None => dirty.put(block, Changed::part(from, bytes)),
        }
    }

    /// Takes a page of the cache as a whole block, if it can be shared.
    fn keep(&mut self, block: u64, page: ShownPage<'_>) -> bool {
        let Form::Mapped { dirty, .. } = &mut self.form else {
            unreachable!("asked of mapped files only");
        };
        if let Some(Changed::Kept(kept)) = dirty.get_mut(block)
            && page.renew(kept)
        {
            return true;
        }
        page.share()
            .map(|page| dirty.put(block, Changed::Kept(page)))
            .is_some()
    }

    /// Changes the file's length; returns the extents that are free then. `source` is `None` in
    /// replay.
    pub(in crate::store) fn resize(
        &mut self,
        len: u64,
        source: Option<&dyn Source>,
    ) -> Result<Vec<Run>> {
        if len > self.len {
            // Blocks preallocated beyond the end stay.
            self.grow(len, source)?;
            return Ok(Vec::new());
        }
        if len == 0 {
            let before = std::mem::replace(self, Self::inline(Vec::new()));
            return Ok(match before.form {
                Form::Inline(_) => Vec::new(),
                Form::Mapped { mapping, .. } => mapping.iter().map(|(_, run)| run).collect(),
            });
        }
        self.len = len;
        match &mut self.form {
            Form::Inline(bytes) => {
                bytes.truncate(len as usize);
                Ok(Vec::new())
            }
            Form::Mapped { mapping, dirty } => {
                let end = len.div_ceil(BLOCK_LEN);
                dirty.remove(end..u64::MAX);
                if let Some(changed) = dirty.get_mut(len / BLOCK_LEN) {
                    changed.cut((len % BLOCK_LEN) as usize);
                }
                Ok(mapping.unmap(end..u64::MAX))
            }
        }
    }

    /// Raises `len`, and zeroes the bytes between.
    pub(in crate::store) fn grow(&mut self, len: u64, source: Option<&dyn Source>) -> Result<()> {
        if len <= self.len {
            return Ok(());
        }
        if len > INLINE_MAX as u64 {
            self.become_mapped();
        }
        let last = self.len / BLOCK_LEN;
        match (&mut self.form, source) {
            (Form::Inline(bytes), _) => bytes.resize(len as usize, 0),
            (Form::Mapped { .. }, Some(source)) => {
                if !self.len.is_multiple_of(BLOCK_LEN) && self.needs(last) {
                    self.page(last, false, source)?;
                }
            }
            (Form::Mapped { .. }, None) => {}
        }
        self.len = len;
        Ok(())
    }

    /// Zeroes a byte range; returns the extents that are free then.
    ///
    /// `keep`: blocks stay allocated, and become unwritten. `source` is `None` in replay.
    pub(in crate::store) fn zero(
        &mut self,
        range: Range<u64>,
        keep: bool,
        source: Option<&dyn Source>,
    ) -> Result<Vec<Run>> {
        if keep {
            self.become_mapped();
        }
        if let Form::Inline(bytes) = &mut self.form {
            let len = bytes.len() as u64;
            bytes[range.start.min(len) as usize..range.end.min(len) as usize].fill(0);
            return Ok(Vec::new());
        }
        let inner = whole(&range);
        if let Some(source) = source {
            let edges = [
                range.start..(inner.start * BLOCK_LEN).min(range.end),
                (inner.end * BLOCK_LEN).max(range.start)..range.end,
            ];
            for edge in edges {
                let edge = edge.start..edge.end.min(self.len);
                if edge.start < edge.end {
                    self.zero_within_page(edge, source)?;
                }
            }
        }
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Ok(Vec::new());
        };
        dirty.remove(inner.clone());
        if !keep {
            return Ok(mapping.unmap(inner));
        }
        for (at, run) in mapping.within(inner) {
            if !run.unwritten {
                dirty.note_zeroed(run.extent);
            }
            let unwritten = true;
            mapping.map(at, Run { unwritten, ..run });
        }
        Ok(Vec::new())
    }

    /// Zeroes bytes of one block, if it has data.
    fn zero_within_page(&mut self, range: Range<u64>, source: &dyn Source) -> Result<()> {
        let block = range.start / BLOCK_LEN;
        let start = block * BLOCK_LEN;
        if let Form::Mapped { mapping, dirty } = &self.form
            && dirty.get(block).is_none()
            && mapping.find(block).is_none_or(|run| run.unwritten)
        {
            return Ok(());
        }
        let page = self.page(block, false, source)?;
        page[(range.start - start) as usize..(range.end - start) as usize].fill(0);
        Ok(())
    }

    /// Loads the partial pages at `edges`, and the last one if the file is to become longer, so
    /// that the change itself reads nothing. The content stays the same. `known`: blocks of which
    /// the caller has all bytes.
    pub(in crate::store) fn prepare(
        &mut self,
        edges: [u64; 2],
        len: u64,
        known: impl Fn(u64) -> bool,
        source: &dyn Source,
    ) -> Result<()> {
        hop!();
        let end = if len > self.len { self.len } else { 0 };
        for (place, at) in edges.into_iter().chain([end]).enumerate() {
            let block = at / BLOCK_LEN;
            // The bytes after the old end must be zeroed, which the caller's page does not show.
            let known = |block| place < edges.len() && known(block);
            if !at.is_multiple_of(BLOCK_LEN) && self.needs(block) && !known(block) {
                self.page(block, false, source)?;
            }
        }
        Ok(())
    }

    /// Must a block be read to know all of it?
    fn needs(&self, block: u64) -> bool {
        let Form::Mapped { mapping, dirty } = &self.form else {
            return false;
        };
        block * BLOCK_LEN < self.len
            && !dirty.get(block).is_some_and(Changed::is_whole)
            && mapping.find(block).is_some_and(|run| !run.unwritten)
    }

    /// A page to be changed. `whole`: it is overwritten completely.
    fn page(&mut self, block: u64, whole: bool, source: &dyn Source) -> Result<&mut Page> {
        let len = self.len;
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            unreachable!("asked of mapped files only");
        };
        if !matches!(dirty.get(block), Some(Changed::Whole(_))) {
            let mut page = zeros();
            if !whole {
                let known = dirty.get(block).is_some_and(Changed::is_whole);
                if let Some(run) = mapping.find(block).filter(|run| !run.unwritten && !known) {
                    let parts = dirty.get(block).is_some();
                    source.read_below(run.extent.start, parts, &mut page)?;
                    let shown = len.saturating_sub(block * BLOCK_LEN).min(BLOCK_LEN);
                    page[shown as usize..].fill(0);
                }
                if let Some(changed) = dirty.get(block) {
                    changed.show_in(&mut page);
                }
            }
            dirty.put(block, Changed::Whole(page));
        }
        match dirty.get_mut(block) {
            Some(Changed::Whole(page)) => Ok(page),
            _ => unreachable!("just made whole"),
        }
    }

    /// Turns an inline file into a mapped one.
    fn become_mapped(&mut self) {
        let Form::Inline(bytes) = &mut self.form else {
            return;
        };
        let bytes = std::mem::take(bytes);
        let mut dirty = Dirty::default();
        for (block, part) in bytes.chunks(BLOCK).enumerate() {
            let mut page = zeros();
            page[..part.len()].copy_from_slice(part);
            dirty.put(block as u64, Changed::Whole(page));
        }
        let mapping = Mapping::default();
        self.form = Form::Mapped { mapping, dirty };
    }
}

#[cfg(test)]
mod tests;
