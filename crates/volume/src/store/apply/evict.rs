//! The end of an inode.
//!
//! What the trees have of it is found there by the checkpoint. Only the places of a file's bytes are
//! given back at once, and most files that end have none: so whether there are any is asked as
//! cheaply as can be.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::{FileType, Ino};

use super::prefetched::Prefetched;
use super::transaction::Applier;
use crate::Result;
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::load::SnapshotReader;
use crate::store::memtable::Object;

/// A batch without the last attributes of an inode that it ends, with which the core begins such a
/// batch; and those. Nobody will ask for them.
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
    /// An inode ends, and all that it has.
    pub(in crate::store) fn free(&mut self, ino: Ino) -> Result<()> {
        let is_file = self.is_file_at_its_end(ino);
        let freed = self.snapshot_reader.end(ino, is_file, self.prefetched)?;
        self.freed.extend(freed);
        self.inodes -= 1;
        Ok(())
    }

    /// Has the places asked for of all that the batch ends.
    pub(in crate::store) fn prepare_ends(&self, batch: &[Change<'_>]) -> Result<()> {
        let Some(prefetched) = self.prefetched else {
            return Ok(());
        };
        for change in batch {
            if let Change::Free { ino } = *change {
                let is_file = self.is_file_at_its_end(ino);
                if self.snapshot_reader.has_places_below(ino, is_file) {
                    prefetched.expect_places(ino, is_file)?;
                }
            }
        }
        Ok(())
    }

    /// Does the batch say what ends, and is that a file?
    fn is_file_at_its_end(&self, ino: Ino) -> Option<bool> {
        let (ending, kind) = self.ends?;
        (ending == ino).then_some(kind == FileType::Regular)
    }
}

impl SnapshotReader<'_> {
    /// An inode ends, and all that it has; gives the places that its bytes had. Is it a file, if that is known? If its places
    /// are missing, nothing has happened.
    #[inline]
    pub(in crate::store) fn end(
        &self,
        ino: Ino,
        is_file: Option<bool>,
        prefetched: Option<&Prefetched<'_>>,
    ) -> Result<Vec<Run>> {
        match self.end_without_places(ino, is_file) {
            true => Ok(Vec::new()),
            false => self.end_with_places(ino, is_file, prefetched),
        }
    }

    /// May an inode that did not come since the last checkpoint, and whose bytes did not change, have places?
    #[inline]
    fn may_have_places(&self, is_file: Option<bool>) -> bool {
        let layers = self.layers;
        match is_file {
            Some(is_file) => is_file && (layers.frozen.is_some() || layers.roots.data.is_some()),
            None => true,
        }
    }

    /// Are there places of an inode that only the layers below the active one know?
    fn has_places_below(&self, ino: Ino, is_file: Option<bool>) -> bool {
        let known = |object: &Object| object.fresh || object.content().is_some();
        self.may_have_places(is_file) && self.layers.active.with(ino, known) != Some(true)
    }

    /// An inode ends that has no places, as far as that is seen at a glance: nothing below has it, and it
    /// never had bytes; or it is a file without changed bytes over trees that know no bytes of any; or no file.
    #[inline]
    fn end_without_places(&self, ino: Ino, is_file: Option<bool>) -> bool {
        let mut shard = self.layers.active.shard(ino);
        let (fresh, content) = match shard.get(ino) {
            Some(object) => (object.fresh, object.content().is_some()),
            None => (false, false),
        };
        if content {
            return false;
        }
        if fresh {
            shard.forget(ino);
            return true;
        }
        let below = self.may_have_places(is_file);
        if !below {
            shard.changed(ino).end();
        }
        !below
    }

    #[inline(never)]
    fn end_with_places(
        &self,
        ino: Ino,
        is_file: Option<bool>,
        prefetched: Option<&Prefetched<'_>>,
    ) -> Result<Vec<Run>> {
        let freed = match self.places_above(ino) {
            Some(places) => places?,
            None => match prefetched {
                Some(prefetched) => prefetched.take_places(ino, is_file)?,
                None => self.places_below(ino, is_file)?,
            },
        };
        let mut shard = self.layers.active.shard(ino);
        let mut object = shard.changed(ino);
        if object.fresh {
            drop(object);
            shard.forget(ino);
        } else {
            object.end();
        }
        Ok(freed)
    }

    /// All places that a file's bytes have, if the active layer knows. Its pages that wait for theirs wait no longer.
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
        // Before its first bytes a new file has none.
        object.fresh.then(|| Ok(Vec::new()))
    }

    /// The same, as the layers below know it.
    pub(in crate::store) fn places_below(
        &self,
        ino: Ino,
        is_file: Option<bool>,
    ) -> Result<Vec<Run>> {
        let is_file = match is_file {
            Some(is_file) => is_file,
            None => self.is_file(ino)?,
        };
        if !is_file {
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
