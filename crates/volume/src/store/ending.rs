//! The end of an inode.
//!
//! What the trees have of it is found there by the checkpoint. Only the places of a file's bytes are
//! given back at once, and most files that end have none: so whether there are any is asked as
//! cheaply as can be.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::{FileType, Ino};

use super::change::Maker;
use super::load::Finder;
use super::mapping::{Mapping, Run};
use crate::Result;

/// A batch without the last attributes of an inode that it ends, with which the core begins such a
/// batch; and those. Nobody will ask for them.
pub(super) fn without_last_attributes<'b, 'c>(
    batch: &'b [Change<'c>],
) -> (Option<&'b InodeRecord>, &'b [Change<'c>]) {
    match batch {
        [Change::Attributes { inode }, rest @ ..] if matches!(rest.last(), Some(Change::Free { ino }) if *ino == inode.ino) => {
            (Some(inode), rest)
        }
        _ => (None, batch),
    }
}

impl Maker<'_, '_> {
    /// An inode ends, and all that it has.
    pub(super) fn free(&mut self, ino: Ino) -> Result<()> {
        let freed = self.finder.end(ino, self.is_file_at_its_end(ino))?;
        self.freed.extend(freed);
        self.inodes -= 1;
        Ok(())
    }

    /// Does the batch say what ends, and is that a file?
    fn is_file_at_its_end(&self, ino: Ino) -> Option<bool> {
        let (ending, kind) = self.ends?;
        (ending == ino).then_some(kind == FileType::Regular)
    }
}

impl Finder<'_> {
    /// An inode ends, and all that it has; gives the places that its bytes had. Is it a file, if that is known?
    #[inline]
    pub(super) fn end(&self, ino: Ino, is_file: Option<bool>) -> Result<Vec<Run>> {
        match self.end_without_places(ino, is_file) {
            true => Ok(Vec::new()),
            false => self.end_with_places(ino, is_file),
        }
    }

    /// An inode ends that has no places, as far as that is seen at a glance: nothing below has it, and it
    /// never had bytes; or it is a file without changed bytes over trees that know no bytes of any; or no file.
    #[inline]
    fn end_without_places(&self, ino: Ino, is_file: Option<bool>) -> bool {
        let layers = self.layers;
        let mut shard = layers.active.shard(ino);
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
        let below = match is_file {
            Some(is_file) => is_file && (layers.frozen.is_some() || layers.roots.data.is_some()),
            None => true,
        };
        if !below {
            shard.changed(ino).end();
        }
        !below
    }

    #[inline(never)]
    fn end_with_places(&self, ino: Ino, is_file: Option<bool>) -> Result<Vec<Run>> {
        let is_file = match is_file {
            Some(is_file) => is_file,
            None => self.is_file(ino)?,
        };
        let freed = match is_file {
            true => self.places_of(ino)?,
            false => Vec::new(),
        };
        let mut shard = self.layers.active.shard(ino);
        let object = shard.changed(ino);
        if object.fresh {
            shard.forget(ino);
        } else {
            object.end();
        }
        Ok(freed)
    }

    /// All places that a file's bytes have. Its pages that wait for theirs wait no longer.
    fn places_of(&self, ino: Ino) -> Result<Vec<Run>> {
        let layers = self.layers;
        if let Some(object) = layers.active.shard(ino).get_mut(ino) {
            if let Some(content) = object.content_mut() {
                let before = content.dirty();
                let freed = content.resize(0, None);
                layers.active.count_dirty(ino, before, content.dirty());
                return freed;
            }
            if object.fresh {
                // Before its first bytes a new file has none.
                return Ok(Vec::new());
            }
        }
        let frozen = layers.frozen.as_ref().and_then(|frozen| {
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
