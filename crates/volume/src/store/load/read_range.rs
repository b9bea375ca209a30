//! Reading a part of a file: only the extents of that part are looked at.

use std::ops::Range;

use holdfast_core::store::SpaceRun;
use holdfast_types::Ino;

use super::SnapshotReader;
use crate::block::BLOCK;
use crate::error::Result;
use crate::store::file::{Content, Mapping, Run};
use crate::store::memtable::Known;
use crate::tree::{Data, DataKey, DataKind};

const BLOCK_LEN: u64 = BLOCK as u64;

impl SnapshotReader<'_> {
    /// Calls `look` with a file's present content, of which only this range is valid: the rest may
    /// show as holes.
    pub(super) fn with_bytes<R>(
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

    /// Calls `look` with a file's present content, of which the extents from block `first` on are
    /// valid, while `more` returns `true`.
    pub(in crate::store) fn with_part<R>(
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
                Data::Extent(extent) if belongs => Some((key.offset, Run::of(&extent))),
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
                let run = Run::of(&extent);
                if !more(key.offset, &run) {
                    break;
                }
                mapping.map(key.offset, run);
            }
        }
        Ok(mapping)
    }
}
