//! Finding what is asked for: in the overlays, then in the trees.

mod content;
mod names;
mod rest;
mod walk;

use holdfast_core::store::InodeRecord;
use holdfast_types::{FileType, Ino};

use super::device::Blocks;
use super::hash::NameHasher;
use super::layers::{Known, Layers};
use super::records::DataRecords;
use crate::Result;
use crate::tree::{Contents, Data, DataKey, DataKind, Entries, Hashes, Inodes, NodeCache, Tree};

/// Everything that a search needs.
#[derive(Clone, Copy)]
pub(super) struct Finder<'l> {
    pub(super) layers: &'l Layers,
    pub(super) cache: &'l NodeCache<Blocks>,
    pub(super) hasher: &'l NameHasher,
}

impl<'l> Finder<'l> {
    pub(super) fn inodes(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.inodes)
    }

    pub(super) fn entries(&self) -> Tree<'l, Entries, Blocks> {
        Tree::new(self.cache, self.layers.roots.entries)
    }

    pub(super) fn hashes(&self) -> Tree<'l, Hashes, Blocks> {
        Tree::new(self.cache, self.layers.roots.hashes)
    }

    pub(super) fn data(&self) -> Tree<'l, Contents, Blocks> {
        Tree::new(self.cache, self.layers.roots.data)
    }

    pub(super) fn orphans(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.orphans)
    }

    /// An inode's attributes.
    pub(super) fn inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        match self.layers.find(ino, |object| object.record.clone()) {
            Known::Found(record) => Ok(record),
            Known::Nothing => Ok(None),
            Known::Below => Ok(self.inodes().get(&ino, |inode| inode.record)?),
        }
    }

    /// The attributes of several inodes, in this order; cheap where the numbers ascend.
    pub(super) fn each_inode(
        &self,
        inos: &[Ino],
        mut each: impl FnMut(Option<InodeRecord>),
    ) -> Result<()> {
        if !inos.is_sorted_by(|one, other| one < other) {
            for ino in inos {
                each(self.inode(*ino)?);
            }
            return Ok(());
        }
        let changed = self.changed(inos);
        let mut below = Vec::new();
        let wanted = if changed.is_empty() {
            inos
        } else {
            let mut changed = changed.iter().map(|(place, _)| *place).peekable();
            let is_below = |(place, _): &(usize, &Ino)| changed.next_if_eq(place).is_none();
            below.extend(
                inos.iter()
                    .enumerate()
                    .filter(is_below)
                    .map(|(_, ino)| *ino),
            );
            &below
        };
        let mut changed = changed.into_iter().peekable();
        let mut at = 0;
        let mut cursor = self.inodes().range(wanted.first())?;
        cursor.find_each(wanted, |_, inode| {
            while let Some((_, record)) = changed.next_if(|(place, _)| *place == at) {
                each(record);
                at += 1;
            }
            each(inode.map(|inode| inode.record));
            at += 1;
        })?;
        changed.for_each(|(_, record)| each(record));
        Ok(())
    }

    /// What overlays know of these inodes, whose numbers ascend: by their places among them, ascending.
    fn changed(&self, inos: &[Ino]) -> Vec<(usize, Option<InodeRecord>)> {
        let mut changed: Vec<(usize, Option<InodeRecord>)> = Vec::new();
        for overlay in self.layers.overlays() {
            let newer = changed.len();
            overlay.with_each(inos, |place, object| {
                let known = match &object.record {
                    Some(record) => record.clone(),
                    None if object.fresh => None,
                    None => return,
                };
                let above = &changed[..newer];
                if above
                    .binary_search_by_key(&place, |(place, _)| *place)
                    .is_err()
                {
                    changed.push((place, known));
                }
            });
            if newer > 0 {
                changed.sort_unstable_by_key(|(place, _)| *place);
            }
        }
        changed
    }

    /// The records of the data tree.
    pub(super) fn data_records(&self) -> DataRecords<'l> {
        DataRecords::of(self.data())
    }

    /// All records of one kind that belong to an inode.
    pub(super) fn each_data(
        &self,
        ino: Ino,
        kind: DataKind,
        mut each: impl FnMut(u64, Data<'_>),
    ) -> Result<()> {
        let first = DataKey::first(ino, kind);
        let mut cursor = self.data().range(Some(&first))?;
        while let Some((key, value)) = cursor.next()? {
            if (key.ino, key.kind) != (ino, kind) {
                break;
            }
            each(key.offset, value);
        }
        Ok(())
    }

    /// Is this a regular file?
    pub(super) fn is_file(&self, ino: Ino) -> Result<bool> {
        let inode = self.inode(ino)?;
        Ok(inode.is_some_and(|inode| inode.kind == FileType::Regular))
    }
}

#[cfg(test)]
mod tests;
