//! Reading files: layers that wait here over bodies and objects.

use super::blocks::{BLOCK, Blocks, Found, Wants};
use super::file::{File, State};
use super::files::Files;
use super::layer::Layer;
use super::map;
use super::page::PAGE;
use crate::meta::{Content, Extent};
use holdfast_core::store::SpaceRun;
use holdfast_types::{Errno, Ino, Result};
use std::ops::Range;
use std::sync::Arc;

/// How often a map is loaded because the one before led to an object that has gone.
const TRIES: u32 = 2;
/// How often content is loaded because it changes meanwhile.
const LOADS: u32 = 64;

/// What a read needs of a file, at one moment.
struct Snapshot {
    content: Option<Arc<Content>>,
    layers: [Option<Layer>; 2],
    /// Ranges of the file that the layers do not determine.
    below: Vec<Range<u64>>,
}

impl Files {
    /// The first run of bytes at or after `offset` that takes space.
    ///
    /// # Errors
    /// Those of [`Meta::content`](crate::meta::Meta::content).
    pub(crate) fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        if offset >= map::MOST {
            return Ok(None);
        }
        let file = self.table.get_or_new(ino);
        for _ in 0..LOADS {
            let state = file.state.lock();
            if let Some(view) = state.view() {
                let run = view.next(offset / PAGE).map(|(from, to)| {
                    let start = (from * PAGE).max(offset);
                    SpaceRun {
                        start,
                        len: to.saturating_mul(PAGE) - start,
                        written: true,
                    }
                });
                return Ok(run);
            }
            drop(state);
            self.load_content(&file)?;
        }
        Err(Errno::EIO)
    }

    /// Reads bytes; holes, and what is beyond the end, are zeros.
    ///
    /// # Errors
    /// Those of [`Meta::content`](crate::meta::Meta::content), and `EIO`: bytes that are mapped
    /// cannot be read.
    pub(crate) fn read(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        let file = self.table.get_or_new(ino);
        let end = offset.saturating_add(buf.len() as u64);
        let range = offset.min(map::MOST)..end.min(map::MOST);
        for _ in 0..TRIES {
            let snapshot = self.snapshot(&file, &range)?;
            buf.fill(0);
            if let Some(content) = &snapshot.content {
                match self.read_base(content, &snapshot.below, offset, buf) {
                    Err(Errno::ENOENT) => {
                        self.drop_content(&file, content);
                        continue;
                    }
                    filled => filled?,
                }
            }
            for layer in snapshot.layers.into_iter().flatten() {
                layer.lay_over(offset, buf);
            }
            self.keep_limits();
            return Ok(());
        }
        Err(Errno::EIO)
    }

    fn snapshot(&self, file: &Arc<File>, range: &Range<u64>) -> Result<Snapshot> {
        let (from, to) = (range.start / PAGE, range.end.div_ceil(PAGE));
        for _ in 0..LOADS {
            let mut state = file.state.lock();
            let flight = state.flight.as_ref().map(|it| it.layer.part(from, to));
            let waiting = state.waiting.as_ref().map(|it| it.layer.part(from, to));
            let layers = [flight, waiting];
            let below = undetermined(&layers, range);
            if below.is_empty() || state.base.content.is_some() {
                if state.base.content.is_some() {
                    self.prefetch(&mut state, range);
                }
                return Ok(Snapshot {
                    content: state.base.content.clone(),
                    layers,
                    below,
                });
            }
            drop(state);
            self.load_content(file)?;
        }
        Err(Errno::EIO)
    }

    /// Fills the ranges of a buffer, which begins at `offset`, from content of the database.
    ///
    /// # Errors
    /// `ENOENT`: an object has gone. `EIO`.
    pub(super) fn read_base(
        &self,
        content: &Content,
        ranges: &[Range<u64>],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        let found = self.load_blocks(content, ranges)?;
        copy_base(&found, content, ranges, offset, buf)
    }

    /// Brings the blocks of ranges of a file.
    ///
    /// # Errors
    /// `ENOENT`: an object has gone. `EIO`.
    pub(super) fn load_blocks(&self, content: &Content, ranges: &[Range<u64>]) -> Result<Found> {
        let Content::Extents(extents) = content else {
            return Ok(Found::new());
        };
        let mut wants = Wants::new();
        for (part, whole) in parts(extents, ranges) {
            let (bytes, end) = (in_object(&part)?, in_object(&whole)?.end);
            Blocks::want(&mut wants, part.object, bytes, end);
        }
        self.blocks.load(&wants)
    }

    /// The map led to an object that has gone.
    fn drop_content(&self, file: &Arc<File>, content: &Arc<Content>) {
        let mut state = file.state.lock();
        let same = |known: &Arc<Content>| Arc::ptr_eq(known, content);
        if state.base.content.as_ref().is_some_and(same) {
            state.base.content = None;
            state.revision += 1;
        }
        self.changed(file, &mut state);
    }

    /// Loads the content of a file. It may have changed when this returns.
    pub(super) fn load_content(&self, file: &Arc<File>) -> Result<()> {
        let revision = file.state.lock().revision;
        let (generation, content) = self.meta.content(file.ino)?;
        let mut state = file.state.lock();
        let taken = state.take_in_content(revision, generation, content);
        self.changed(file, &mut state);
        taken
    }

    /// Loads the record of a file.
    pub(super) fn load_record(&self, file: &Arc<File>) -> Result<()> {
        let nodes = self.meta.load(&[file.ino], &[])?;
        let node = nodes.first().ok_or(Errno::ESTALE)?;
        let mut state = file.state.lock();
        state.take_in(node);
        state.base.outdated = false;
        self.changed(file, &mut state);
        match state.base.record {
            Some(_) => Ok(()),
            None => Err(Errno::EINVAL),
        }
    }

    /// Notes a read, and asks for what comes behind it if reads are sequential.
    fn prefetch(&self, state: &mut State, range: &Range<u64>) {
        let Some(range) = state.sequence.note(range, self.readahead.most()) else {
            return;
        };
        let Some(Content::Extents(extents)) = state.base.content.as_deref() else {
            return;
        };
        let mut wants = Wants::new();
        for (part, whole) in parts(extents, &[range]) {
            if let (Ok(bytes), Ok(whole)) = (in_object(&part), in_object(&whole)) {
                Blocks::want(&mut wants, part.object, bytes, whole.end);
            }
        }
        self.readahead.ask(wants);
    }
}

/// The parts of extents with bytes that lie in ranges, and the extents themselves.
fn parts(extents: &[Extent], ranges: &[Range<u64>]) -> Vec<(Extent, Extent)> {
    let parts = ranges.iter().flat_map(|range| {
        let touching = map::touching(extents, range).iter();
        let bytes = touching.filter(|extent| extent.object != 0);
        bytes.filter_map(|extent| Some((map::within(extent, range)?, *extent)))
    });
    parts.collect()
}

/// Fills the ranges of a buffer, which begins at `offset`, from content and blocks of it.
///
/// # Errors
/// `EIO`: blocks are missing.
pub(super) fn copy_base(
    found: &Found,
    content: &Content,
    ranges: &[Range<u64>],
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let place = |range: &Range<u64>| {
        let from = usize::try_from(range.start.checked_sub(offset)?).ok()?;
        Some(from..usize::try_from(range.end.checked_sub(offset)?).ok()?)
    };
    match content {
        Content::Body { bytes, .. } => {
            for range in ranges {
                let end = range.end.min(bytes.len() as u64);
                let Some(from) = bytes.get(range.start as usize..end as usize) else {
                    continue;
                };
                let to = place(&(range.start..end)).and_then(|at| buf.get_mut(at));
                to.ok_or(Errno::EIO)?.copy_from_slice(from);
            }
        }
        Content::Extents(extents) => {
            for (part, _) in parts(extents, ranges) {
                let to = place(&(part.offset..map::end(&part))).and_then(|at| buf.get_mut(at));
                copy_part(found, &part, to.ok_or(Errno::EIO)?).ok_or(Errno::EIO)?;
            }
        }
    }
    Ok(())
}

fn in_object(extent: &Extent) -> Result<Range<u64>> {
    let end = extent.object_offset.checked_add(extent.len);
    Ok(extent.object_offset..end.ok_or(Errno::EIO)?)
}

/// Copies the bytes of an extent from blocks.
fn copy_part(found: &Found, extent: &Extent, to: &mut [u8]) -> Option<()> {
    let (mut at, mut rest) = (extent.object_offset, to);
    while !rest.is_empty() {
        let block = found.get(&(extent.object, at / BLOCK))?;
        let from = block.get((at % BLOCK) as usize..)?;
        let count = from.len().min(rest.len());
        if count == 0 {
            return None;
        }
        let (now, later) = rest.split_at_mut(count);
        now.copy_from_slice(&from[..count]);
        (at, rest) = (at + count as u64, later);
    }
    Some(())
}

/// The parts of a range that no layer determines, by pages.
fn undetermined(layers: &[Option<Layer>; 2], range: &Range<u64>) -> Vec<Range<u64>> {
    let mut below = Vec::<Range<u64>>::new();
    for page in range.start / PAGE..range.end.div_ceil(PAGE) {
        if layers
            .iter()
            .flatten()
            .any(|layer| !layer.needs_below(page))
        {
            continue;
        }
        let part = range.start.max(page * PAGE)..range.end.min((page + 1) * PAGE);
        match below.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => below.push(part),
        }
    }
    below
}
