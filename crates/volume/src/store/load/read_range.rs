//! Reading a part of a file: only the extents of that part are looked at.

use std::ops::Range;

use holdfast_core::store::SpaceRun;
use holdfast_types::Ino;

use super::SnapshotReader;
use crate::block::BLOCK;
use crate::error::Result;
use crate::space;
use crate::store::Inner;
use crate::store::file::content::{Content, MissingRange};
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::memtable::barrier::Snapshot;
use crate::store::memtable::layers::{Known, Layers};
use crate::tree::{self, Data, DataKey, DataKind};

const BLOCK_LEN: u64 = BLOCK as u64;

/// The run of an extent record.
pub(in crate::store) fn run_of(extent: &tree::Extent) -> Run {
    Run {
        extent: space::Extent::new(extent.block, u64::from(extent.blocks)),
        birth: extent.birth,
        unwritten: extent.unwritten,
    }
}

impl Inner {
    /// Reads bytes of a file. Bytes that change meanwhile are undefined: their blocks may belong to
    /// another file by then.
    ///
    /// # Errors
    /// Those of the device, and of what is damaged.
    pub(in crate::store) fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        loop {
            let (layers, known) = self.begin_read(ino, offset, buf);
            let read = match known {
                Known::Found(missing) => self.fill(&missing, buf),
                Known::Nothing => Ok(()),
                Known::Below => self.read_below(&layers, ino, offset, buf),
            };
            if layers.is_current() {
                return read;
            }
        }
    }

    /// Reads what the memtables have, in one passage of the barrier. A commit that takes pages out
    /// of them publishes these as [in flight](crate::store::load::in_flight) before it reopens the
    /// barrier.
    fn begin_read(
        &self,
        ino: Ino,
        offset: u64,
        buf: &mut [u8],
    ) -> (Snapshot<'_>, Known<Vec<MissingRange>>) {
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
        let missing = self
            .snapshot_reader(layers)
            .with_bytes(ino, &bytes, begin)?;
        self.fill(&missing, buf)
    }

    fn fill(&self, missing: &[MissingRange], buf: &mut [u8]) -> Result<()> {
        let blocks = self.blocks();
        missing.iter().try_for_each(|it| it.fill(buf, blocks))
    }
}

impl SnapshotReader<'_> {
    /// Calls `look` with a file's present content.
    pub(in crate::store) fn with_content<R>(
        &self,
        ino: Ino,
        look: impl FnMut(&Content) -> Result<R>,
    ) -> Result<R> {
        self.with_part(ino, 0, look, |_, _| true)
    }

    /// Calls `look` with a file's present content, of which only this range is valid: the rest may
    /// show as holes.
    pub(in crate::store) fn with_bytes<R>(
        &self,
        ino: Ino,
        bytes: &Range<u64>,
        look: impl FnMut(&Content) -> Result<R>,
    ) -> Result<R> {
        let end = bytes.end.div_ceil(BLOCK_LEN);
        self.with_part(ino, bytes.start / BLOCK_LEN, look, |at, _| at < end)
    }

    /// The first allocated run of a file at or after `offset`.
    pub(in crate::store) fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let mut found = None;
        // Adjacent extents are one run.
        let more = |at: u64, run: &Run| {
            let goes_on = found.is_none_or(|found| found == (at, run.unwritten));
            found = Some((at + run.extent.length, run.unwritten));
            goes_on
        };
        let look = |content: &Content| Ok(content.next_space(offset));
        self.with_part(ino, offset / BLOCK_LEN, look, more)
    }

    /// As [`with_content`](Self::with_content), with extents from block `first` on, while `more`
    /// returns `true`.
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

    /// The extents of a file from block `first` on, while `more` returns `true`.
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
        // The extent before may reach beyond block `first`.
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
