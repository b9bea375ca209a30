//! Freeing an inode.
//!
//! Its records in the trees are found there by the checkpoint. Only a file's extents are freed at
//! once. Most files that are freed have none, so that is checked cheaply first.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::Ino;

use super::prefetched::Prefetched;
use super::transaction::Applier;
use crate::error::Result;
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::load::SnapshotReader;
use crate::store::memtable::Object;

/// Splits the last attributes of an inode from a batch that frees it: the core begins such a batch
/// with them, and they are never read.
pub(in crate::store) fn without_last_attributes<'b, 'c>(
    batch: &'b [Change<'c>],
) -> (Option<&'b InodeRecord>, &'b [Change<'c>]) {
    match batch {
        [Change::Attributes { inode }, rest @ ..] if matches!(rest.last(), Some(Change::Free { ino }) if *ino == inode.ino) => {
            (Some(inode), rest)
        }
        _ => (None, batch),
    }
}

impl Applier<'_, '_> {
    /// Frees an inode with all that belongs to it.
    pub(super) fn free(&mut self, ino: Ino) -> Result<()> {
        let reader = self.snapshot_reader;
        let freed = match (reader.places_above(ino), self.prefetched) {
            (Some(places), _) => places?,
            _ if self.not_a_file == Some(ino) => Vec::new(),
            (None, Some(prefetched)) => prefetched.take_places(ino)?,
            (None, None) => reader.places_below(ino)?,
        };
        let mut shard = reader.layers.active.shard(ino);
        let mut object = shard.changed(ino);
        if object.fresh {
            drop(object);
            shard.forget(ino);
        } else {
            object.end();
        }
        self.freed.extend(freed);
        self.inodes -= 1;
        Ok(())
    }

    /// Requests the prefetch of the extents of all inodes that the batch frees.
    pub(super) fn prepare_frees(
        &self,
        batch: &[Change<'_>],
        prefetched: &Prefetched<'_>,
    ) -> Result<()> {
        let known = |object: &Object| object.fresh || object.content().is_some();
        let active = &self.snapshot_reader.layers.active;
        for change in batch {
            if let Change::Free { ino } = *change
                && self.not_a_file != Some(ino)
                && active.with(ino, known) != Some(true)
            {
                prefetched.expect_places(ino)?;
            }
        }
        Ok(())
    }
}

impl SnapshotReader<'_> {
    /// Takes a file's extents, if the active memtable knows them. Its dirty pages are dropped.
    fn places_above(&self, ino: Ino) -> Option<Result<Vec<Run>>> {
        let active = &self.layers.active;
        let mut shard = active.shard(ino);
        let mut object = shard.get_mut(ino)?;
        if let Some(content) = object.content_mut() {
            let before = content.dirty();
            let freed = content.resize(0, None);
            active.count_dirty(ino, before, content.dirty());
            return Some(freed);
        }
        // A new file has none before its first write.
        object.fresh.then(|| Ok(Vec::new()))
    }

    /// The same from the layers below.
    pub(super) fn places_below(&self, ino: Ino) -> Result<Vec<Run>> {
        if !self.is_file(ino)? {
            return Ok(Vec::new());
        }
        let frozen = self.layers.frozen.as_ref().and_then(|frozen| {
            frozen.with(ino, |object| match object.content() {
                Some(content) => Some(content.mapping().map_or_else(Vec::new, runs)),
                None => object.fresh.then(Vec::new),
            })
        });
        match frozen.flatten() {
            Some(places) => Ok(places),
            None => self.places_in_trees(ino),
        }
    }
}

fn runs(mapping: &Mapping) -> Vec<Run> {
    mapping.iter().map(|(_, run)| run).collect()
}
