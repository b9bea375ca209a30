//! Finding what is asked for: in the overlays, then in the trees.

use holdfast_core::store::InodeRecord;
use holdfast_types::{FileType, Ino};

use super::device::Blocks;
use super::records::DataRecords;
use super::seen::Seen;
use crate::Result;
use crate::store::memtable::hash::NameHasher;
use crate::store::memtable::layers::{Known, Layers};
use crate::tree::{Contents, Data, DataKey, DataKind, Entries, Hashes, Inodes, NodeCache, Tree};

/// Everything that a search needs.
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

    /// An inode's attributes, with the space that it takes.
    pub(in crate::store) fn whole_inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        let mut seen = Seen::default();
        for memtable in self.layers.memtables() {
            memtable.with(ino, |object| seen.add(object));
            if !seen.needs_below() {
                return Ok(seen.over(None));
            }
        }
        let below = self.inodes().get(&ino, |inode| inode.record)?;
        Ok(seen.over(below))
    }

    /// An inode's attributes. Of its space they say nothing that holds.
    pub(in crate::store) fn inode(&self, ino: Ino) -> Result<Option<InodeRecord>> {
        match self.layers.find(ino, |object| object.record.clone()) {
            Known::Found(record) => Ok(record),
            Known::Nothing => Ok(None),
            Known::Below => Ok(self.inodes().get(&ino, |inode| inode.record)?),
        }
    }

    /// The attributes of several inodes, in this order, with the space that they take; cheap where the numbers
    /// ascend.
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
        let changed = self.changed(inos);
        let mut below = Vec::new();
        let wanted = if changed.is_empty() {
            inos
        } else {
            let known = changed.iter().filter(|(_, seen)| !seen.needs_below());
            let mut known = known.map(|(place, _)| *place).peekable();
            let is_below = |(place, _): &(usize, &Ino)| known.next_if_eq(place).is_none();
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
            while let Some((_, seen)) =
                changed.next_if(|(place, seen)| *place == at && !seen.needs_below())
            {
                each(seen.over(None));
                at += 1;
            }
            let below = inode.map(|inode| inode.record);
            match changed.next_if(|(place, _)| *place == at) {
                Some((_, seen)) => each(seen.over(below)),
                None => each(below),
            }
            at += 1;
        })?;
        changed.for_each(|(_, seen)| each(seen.over(None)));
        Ok(())
    }

    /// What overlays know of these inodes, whose numbers ascend: by their places among them, ascending.
    pub(super) fn changed(&self, inos: &[Ino]) -> Vec<(usize, Seen)> {
        let mut changed: Vec<(usize, Seen)> = Vec::new();
        for memtable in self.layers.memtables() {
            let newer = changed.len();
            memtable.with_each(inos, |place, object| {
                let above = &mut changed[..newer];
                match above.binary_search_by_key(&place, |(place, _)| *place) {
                    Ok(at) => {
                        above[at].1.add(object);
                    }
                    Err(_) => {
                        let mut seen = Seen::default();
                        if seen.add(object) {
                            changed.push((place, seen));
                        }
                    }
                }
            });
            if newer > 0 {
                changed.sort_unstable_by_key(|(place, _)| *place);
            }
        }
        changed
    }

    /// The records of the data tree.
    pub(in crate::store) fn data_records(&self) -> DataRecords<'l> {
        DataRecords::of(self.data())
    }

    /// All records of one kind that belong to an inode.
    pub(in crate::store) fn each_data(
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
    pub(in crate::store) fn is_file(&self, ino: Ino) -> Result<bool> {
        let inode = self.inode(ino)?;
        Ok(inode.is_some_and(|inode| inode.kind == FileType::Regular))
    }
}

#[cfg(test)]
mod tests;
