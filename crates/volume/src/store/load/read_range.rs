//! Reading a part of a file: no more of its extents are looked at than that part has.

use std::ops::Range;

use holdfast_core::store::SpaceRun;
use holdfast_types::Ino;

use super::SnapshotReader;
use crate::store::Inner;
use crate::store::file::content::{Absent, Content};
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::memtable::barrier::Snapshot;
use crate::store::memtable::layers::{Known, Layers};
use crate::tree::{self, Data, DataKey, DataKind};
use crate::{BLOCK, Result, space};

const BLOCK_LEN: u64 = BLOCK as u64;

/// A run of blocks from its record.
pub(in crate::store) fn run_of(extent: &tree::Extent) -> Run {
    Run {
        extent: space::Extent::new(extent.block, u64::from(extent.blocks)),
        birth: extent.birth,
        unwritten: extent.unwritten,
    }
}

impl Inner {
    /// Reads bytes of a file. Those that change meanwhile may come as any: their blocks may be
    /// another file's by then.
    ///
    /// # Errors
    /// Those of the device, and of what was found damaged.
    pub(in crate::store) fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        loop {
            let (layers, known) = self.begin_read(ino, offset, buf);
            let read = match known {
                Known::Found(absent) => self.fill(&absent, buf),
                Known::Nothing => Ok(()),
                Known::Below => self.read_below(&layers, ino, offset, buf),
            };
            if layers.is_current() {
                return read;
            }
        }
    }

    /// Reads what the layers in memory have of it. In one passage of the gate: what a commit takes out of them it
    /// shows as [on its way](crate::store::load::in_flight) before others pass.
    fn begin_read(
        &self,
        ino: Ino,
        offset: u64,
        buf: &mut [u8],
    ) -> (Snapshot<'_>, Known<Vec<Absent>>) {
        let passed = self.freeze_barrier.pass();
        let known = passed.find(ino, |object| {
            let content = object.content()?;
            Some(content.begin_read(offset, buf))
        });
        if matches!(known, Known::Nothing) {
            buf.fill(0);
        }
        (self.freeze_barrier.snapshot(), known)
    }

    fn read_below(&self, layers: &Layers, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        let bytes = offset..offset.saturating_add(buf.len() as u64);
        let begin = |content: &Content| Ok(content.begin_read(offset, buf));
        let absent = self
            .snapshot_reader(layers)
            .with_bytes(ino, &bytes, begin)?;
        self.fill(&absent, buf)
    }

    fn fill(&self, absent: &[Absent], buf: &mut [u8]) -> Result<()> {
        let blocks = self.blocks();
        absent.iter().try_for_each(|it| it.fill(buf, blocks))
    }
}

impl SnapshotReader<'_> {
    /// Shows a file's content as it is now.
    pub(in crate::store) fn with_content<R>(
        &self,
        ino: Ino,
        look: impl FnMut(&Content) -> Result<R>,
    ) -> Result<R> {
        self.with_part(ino, 0, look, |_, _| true)
    }

    /// Shows a file's content as it is now, for who reads these bytes: of the others it may say that they
    /// are holes.
    pub(in crate::store) fn with_bytes<R>(
        &self,
        ino: Ino,
        bytes: &Range<u64>,
        look: impl FnMut(&Content) -> Result<R>,
    ) -> Result<R> {
        let end = bytes.end.div_ceil(BLOCK_LEN);
        self.with_part(ino, bytes.start / BLOCK_LEN, look, |at, _| at < end)
    }

    /// The first bytes of a file at or after `offset` that take space. Asked of every file whose attributes
    /// are wanted: the trees are looked at once, if they can be.
    pub(in crate::store) fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let of_content = |content: &Content| content.next_space(offset);
        let known = self
            .layers
            .find(ino, |object| object.content().map(of_content));
        match known {
            Known::Found(run) => return Ok(run),
            Known::Nothing => return Ok(None),
            Known::Below => {}
        }
        let mut found = None;
        // Extents that continue each other are one piece.
        let mut more = move |at: u64, run: &Run| {
            let goes_on = found.is_none_or(|found| found == (at, run.unwritten));
            found = Some((at + run.extent.length, run.unwritten));
            goes_on
        };
        let first = offset / BLOCK_LEN;
        if first > 0 {
            // What is inline has less than a block.
            let mapping = self.extents_from(ino, first, more)?;
            return Ok(of_content(&Content::mapped(u64::MAX, mapping)));
        }
        let mut mapping = Mapping::default();
        let start = DataKey::first(ino, DataKind::Inline);
        let mut cursor = self.data().range(Some(&start))?;
        while let Some((key, value)) = cursor.next()?
            && key.ino == ino
        {
            match value {
                Data::Inline(_) => {
                    let len = self.inode(ino)?.map_or(0, |inode| inode.size);
                    let inline = self.inline_in_trees(ino, len)?;
                    return Ok(inline.as_ref().and_then(of_content));
                }
                Data::Extent(extent) if more(key.offset, &run_of(&extent)) => {
                    mapping.map(key.offset, run_of(&extent));
                }
                _ => break,
            }
        }
        Ok(of_content(&Content::mapped(u64::MAX, mapping)))
    }

    /// As [`with_content`](Self::with_content), with extents from `first` on only, as long as `more` wants
    /// the next.
    fn with_part<R>(
        &self,
        ino: Ino,
        first: u64,
        mut look: impl FnMut(&Content) -> Result<R>,
        more: impl FnMut(u64, &Run) -> bool,
    ) -> Result<R> {
        let known = self
            .layers
            .find(ino, |object| object.content().map(&mut look));
        match known {
            Known::Found(seen) => seen,
            Known::Nothing => look(&Content::inline(Vec::new())),
            Known::Below => {
                let len = self.inode(ino)?.map_or(0, |inode| inode.size);
                match self.inline_in_trees(ino, len)? {
                    Some(content) => look(&content),
                    None => look(&Content::mapped(len, self.extents_from(ino, first, more)?)),
                }
            }
        }
    }

    /// The places of a file's blocks from `first` on, as long as `more` wants the next.
    fn extents_from(
        &self,
        ino: Ino,
        first: u64,
        mut more: impl FnMut(u64, &Run) -> bool,
    ) -> Result<Mapping> {
        let mut mapping = Mapping::default();
        let key = |offset| DataKey {
            ino,
            kind: DataKind::Extent,
            offset,
        };
        // The one before may reach beyond the first block.
        let before = self.data().last_below(&key(first), |key, value| {
            let belongs = (key.ino, key.kind) == (ino, DataKind::Extent);
            match value {
                Data::Extent(extent) if belongs => Some((key.offset, run_of(&extent))),
                _ => None,
            }
        })?;
        if let Some((at, run)) = before.flatten()
            && at + run.extent.length > first
        {
            if !more(at, &run) {
                return Ok(mapping);
            }
            mapping.map(at, run);
        }
        let mut cursor = self.data().range(Some(&key(first)))?;
        while let Some((key, value)) = cursor.next()? {
            if (key.ino, key.kind) != (ino, DataKind::Extent) {
                break;
            }
            if let Data::Extent(extent) = value {
                let run = run_of(&extent);
                if !more(key.offset, &run) {
                    break;
                }
                mapping.map(key.offset, run);
            }
        }
        Ok(mapping)
    }
}
