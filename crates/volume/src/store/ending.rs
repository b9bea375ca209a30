//! The end of an inode.
//!
//! What the trees have of it is found there by the checkpoint. Only the places of a file's bytes are
//! given back at once, and most files that end have none: so whether there are any is asked as
//! cheaply as can be.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::{FileType, Ino};

use super::change::Maker;
use super::mapping::{Mapping, Run};
use super::overlay::Object;
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
        if self.forget_empty(ino) {
            return Ok(());
        }
        let is_file = match self.ends {
            Some((ending, kind)) if ending == ino => kind == FileType::Regular,
            _ => self.finder.is_file(ino)?,
        };
        if is_file {
            let freed = self.places_of(ino)?;
            self.freed.extend(freed);
        }
        self.inodes -= 1;
        let mut shard = self.finder.layers.active.shard(ino);
        let object = shard.changed(ino);
        if object.fresh {
            shard.forget(ino);
        } else {
            object.end();
        }
        Ok(())
    }

    /// An inode ends that nothing below has, and that never had bytes: then there is no more to do.
    fn forget_empty(&mut self, ino: Ino) -> bool {
        let mut shard = self.finder.layers.active.shard(ino);
        let empty = |object: &Object| object.fresh && object.content().is_none();
        if !shard.get(ino).is_some_and(empty) {
            return false;
        }
        shard.forget(ino);
        self.inodes -= 1;
        true
    }

    /// All places that a file's bytes have. Its pages that wait for theirs wait no longer.
    fn places_of(&self, ino: Ino) -> Result<Vec<Run>> {
        let layers = self.finder.layers;
        let here = layers
            .active
            .with(ino, |object| (object.content().is_some(), object.fresh));
        match here {
            Some((true, _)) => return self.content(ino, |content| content.resize(0, None)),
            // Before its first bytes a new file has none.
            Some((false, true)) => return Ok(Vec::new()),
            _ => {}
        }
        let frozen = layers.frozen.as_ref().and_then(|frozen| {
            frozen.with(ino, |object| match object.content() {
                Some(content) => Some(content.mapping().map_or_else(Vec::new, runs)),
                None => object.fresh.then(Vec::new),
            })
        });
        match frozen.flatten() {
            Some(places) => Ok(places),
            None => self.finder.places_in_trees(ino),
        }
    }
}

fn runs(mapping: &Mapping) -> Vec<Run> {
    mapping.iter().map(|(_, run)| run).collect()
}
