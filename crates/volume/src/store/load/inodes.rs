//! Searching in the memtables, then in the trees.

use holdfast_core::store::InodeRecord;
use holdfast_types::{FileType, Ino};

use super::device::Blocks;
use super::seen::Seen;
use crate::error::Result;
use crate::store::memtable::{Known, Layers, NameHasher};
use crate::tree::{Contents, Data, DataKey, DataKind, Entries, Hashes, Inodes, NodeCache, Tree};

/// The layers of a snapshot, and what a search in them needs.
#[derive(Clone, Copy)]
pub(in crate::store) struct SnapshotReader<'l> {
    pub(in crate::store) layers: &'l Layers,
    pub(in crate::store) cache: &'l NodeCache<Blocks>,
    pub(in crate::store) hasher: &'l NameHasher,
}

impl<'l> SnapshotReader<'l> {
    pub(in crate::store) fn inodes(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.inodes)
    }

    pub(in crate::store) fn entries(&self) -> Tree<'l, Entries, Blocks> {
        Tree::new(self.cache, self.layers.roots.entries)
    }

    pub(in crate::store) fn hashes(&self) -> Tree<'l, Hashes, Blocks> {
        Tree::new(self.cache, self.layers.roots.hashes)
    }

    pub(in crate::store) fn data(&self) -> Tree<'l, Contents, Blocks> {
        Tree::new(self.cache, self.layers.roots.data)
    }

    pub(in crate::store) fn orphans(&self) -> Tree<'l, Inodes, Blocks> {
        Tree::new(self.cache, self.layers.roots.orphans)
    }

    /// What the memtables know of an inode.
    pub(super) fn seen(&self, ino: Ino) -> Seen {
        let mut seen = Seen::default();
        for memtable in self.layers.memtables() {
            memtable.with(ino, |object| seen.add(object));
        }
        seen
    }

    /// An inode's attributes, with its block count.
    pub(in crate::store) fn whole_inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        hop!();
        let seen = self.seen(ino);
        let below = match seen.needs_below() {
            true => self.inodes().get(&ino, |inode| inode.record)?,
            false => None,
        };
        Ok(seen.over(below))
    }

    /// An inode's attributes. Their `space` is not valid.
    pub(in crate::store) fn inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        match self.layers.find(ino, |object| object.record.clone()) {
            Known::Found(record) => Ok(record),
            Known::Nothing => Ok(None),
            Known::Below => Ok(self.inodes().get(&ino, |inode| inode.record)?),
        }
    }

    /// The attributes of several inodes with their block counts, in this order; cheap where the
    /// numbers ascend.
    pub(in crate::store) fn each_inode(
        &self,
        inos: &[Ino],
        mut each: impl FnMut(Option<InodeRecord>),
    ) -> Result<()> {
        if !inos.is_sorted_by(|one, other| one < other) {
            for ino in inos {
                each(self.whole_inode(*ino)?);
            }
            return Ok(());
        }
        let mut cursor = self.inodes().range(inos.first())?;
        cursor.find_each(inos, |ino, inode| {
            each(self.seen(ino).over(inode.map(|inode| inode.record)));
        })?;
        Ok(())
    }

    /// Calls `each` with all records of one kind of an inode.
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

    pub(super) fn is_file(&self, ino: Ino) -> Result<bool> {
        let inode = self.inode(ino)?;
        Ok(inode.is_some_and(|inode| inode.kind == FileType::Regular))
    }
}

#[cfg(test)]
mod tests;
