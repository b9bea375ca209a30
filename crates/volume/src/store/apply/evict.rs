//! Freeing an inode.
//!
//! Its records in the trees are found there by the checkpoint. Only a file's extents are freed at
//! once. Most files that are freed have none, so that is checked cheaply first.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::Ino;

use super::prefetched::Prefetched;
use crate::error::Result;
use crate::store::file::Run;
use crate::store::load::SnapshotReader;
use crate::store::memtable::{Memtable, Object};

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

/// Frees an inode with all that belongs to it. Returns its extents. `may_have`: may the layers
/// below have extents of it?
pub(super) fn free(
    reader: SnapshotReader<'_>,
    prefetched: Option<&Prefetched<'_>>,
    ino: Ino,
    may_have: bool,
) -> Result<Vec<Run>> {
    let freed = match (places_above(reader, ino), prefetched) {
        (Some(places), _) => places?,
        _ if !may_have => Vec::new(),
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
    Ok(freed)
}

/// Requests the prefetch of the extents of all inodes that the batch frees.
pub(super) fn prepare_frees(
    active: &Memtable,
    batch: &[Change<'_>],
    not_a_file: Option<Ino>,
    prefetched: &Prefetched<'_>,
) -> Result<()> {
    let known = |object: &Object| object.fresh || object.content().is_some();
    for change in batch {
        if let Change::Free { ino } = *change
            && not_a_file != Some(ino)
            && active.with(ino, known) != Some(true)
        {
            prefetched.expect_places(ino)?;
        }
    }
    Ok(())
}

/// Takes a file's extents, if the active memtable knows them. Its dirty pages are dropped.
fn places_above(reader: SnapshotReader<'_>, ino: Ino) -> Option<Result<Vec<Run>>> {
    let active = &reader.layers.active;
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
