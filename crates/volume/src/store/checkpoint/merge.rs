//! Merging a frozen memtable: one sorted merge a tree.

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileType, Ino};

use super::nodes::NewNodes;
use super::records::data_changes;
use crate::error::{Error, Result};
use crate::store::load::{Blocks, DataRecords, SnapshotReader};
use crate::store::memtable::{Memtable, NameHasher, Names, Object, Roots, SUBVOLUME};
use crate::tree::{self, Cursor, Entry, EntryKey, HashKey, Inode, Inodes, NodeSize, Origin, Root};

pub(in crate::store) struct TreeMerge<'f> {
    /// For the trees before the merge.
    pub(in crate::store) snapshot_reader: SnapshotReader<'f>,
    pub(in crate::store) memtable: &'f Memtable,
    /// The numbers of its objects, ascending.
    pub(in crate::store) inos: Vec<Ino>,
    pub(in crate::store) hasher: &'f NameHasher,
    pub(in crate::store) nodes: &'f NewNodes<'f>,
    /// Of new nodes.
    pub(in crate::store) node_size: NodeSize,
}

impl<'f> TreeMerge<'f> {
    fn origin(&self) -> Origin {
        Origin {
            generation: self.nodes.generation(),
            subvolume: SUBVOLUME as u32,
        }
    }

    pub(in crate::store) fn all(&self) -> Result<Roots> {
        Ok(Roots {
            inodes: self.inodes()?,
            entries: self.entries()?,
            hashes: self.hashes()?,
            data: self.data()?,
            orphans: self.orphans()?,
        })
    }

    /// Attributes.
    fn inodes(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.snapshot_reader.inodes();
        let mut merge = tree.merge(self.origin(), self.node_size, &mut space);
        let mut before = None;
        self.memtable.each_of(&self.inos, |ino, object| {
            match &object.record {
                Some(Some(record)) => {
                    let next_cookie = self.next_cookie(object, record, &mut before)?;
                    let space = self.space(object, record, &mut before)?;
                    merge.put(ino, &stored(record, space, next_cookie))?;
                }
                Some(None) => merge.delete(ino)?,
                // Attributes are unchanged, except for the space.
                None if object.content().is_some() => {
                    if let Some(old) = self.before(ino, &mut before)? {
                        let space = self.space(object, &old.record, &mut before)?;
                        merge.put(ino, &stored(&old.record, space, old.next_cookie))?;
                    }
                }
                None => {}
            }
            Ok::<(), Error>(())
        })?;
        Ok(merge.finish()?.root)
    }

    /// The stored `next_cookie` of a directory, so that no cookie is reused.
    fn next_cookie(
        &self,
        object: &Object,
        record: &InodeRecord,
        before: &mut Option<Cursor<'f, Inodes, Blocks>>,
    ) -> Result<u64> {
        if record.kind != FileType::Directory {
            return Ok(0);
        }
        let names = object.names();
        let remembered = |before| names.map_or(before, |names| names.remembered(before));
        if object.fresh {
            return Ok(remembered(0));
        }
        let old = self.before(record.ino, before)?;
        Ok(remembered(old.map_or(0, |old| old.next_cookie)))
    }

    /// The space of a file after this merge: what a [`check`](mod@crate::check) counts.
    fn space(
        &self,
        object: &Object,
        record: &InodeRecord,
        before: &mut Option<Cursor<'f, Inodes, Blocks>>,
    ) -> Result<StoredSpace> {
        if record.kind != FileType::Regular {
            return Ok(StoredSpace::UNKNOWN);
        }
        if let Some(content) = object.content() {
            debug_assert_eq!(content.dirty(), 0, "a commit has placed all");
            return Ok(StoredSpace::of(content.blocks(), record.size));
        }
        if object.fresh {
            return Ok(StoredSpace::of(0, record.size));
        }
        let old = self.before(record.ino, before)?.map(|old| old.record);
        let blocks = old.and_then(|old| old.space.pages(old.size));
        Ok(blocks.map_or(StoredSpace::AS_SIZE, |blocks| {
            StoredSpace::of(blocks, record.size)
        }))
    }

    /// An inode as the tree has it; called in ascending order.
    fn before(
        &self,
        ino: Ino,
        before: &mut Option<Cursor<'f, Inodes, Blocks>>,
    ) -> Result<Option<Inode>> {
        let before = match before {
            Some(before) => before,
            none => none.insert(self.snapshot_reader.inodes().range(Some(&ino))?),
        };
        Ok(before.find(&ino)?)
    }

    /// Orphans.
    fn orphans(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.snapshot_reader.orphans();
        let had_any = tree.root().is_some();
        let mut merge = tree.merge(self.origin(), self.node_size, &mut space);
        self.memtable
            .each_of(&self.inos, |ino, object| match &object.record {
                Some(Some(record)) if record.nlink == 0 => {
                    merge.put(ino, &stored(record, StoredSpace::UNKNOWN, 0))
                }
                Some(_) if had_any => merge.delete(ino),
                _ => Ok(()),
            })?;
        Ok(merge.finish()?.root)
    }

    /// Entries by cookie.
    fn entries(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.snapshot_reader.entries();
        let mut merge = tree.merge(self.origin(), self.node_size, &mut space);
        self.each_with_names(|dir, names| {
            names.after(0).try_for_each(|place| {
                let cookie = place.cookie;
                let key = EntryKey { dir, cookie };
                match place.now {
                    Some(name) => {
                        let entry = Entry {
                            ino: name.ino,
                            kind: name.kind,
                            name: name.bytes,
                        };
                        merge.put(key, &entry)
                    }
                    None => merge.delete(key),
                }
            })
        })?;
        Ok(merge.finish()?.root)
    }

    /// Hashes of names.
    fn hashes(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.snapshot_reader.hashes();
        let mut merge = tree.merge(self.origin(), self.node_size, &mut space);
        self.each_with_names(|dir, names| {
            for change in hash_changes(names, self.hasher) {
                let key = HashKey {
                    dir,
                    hash: change.hash,
                    cookie: change.cookie,
                };
                if change.is_there {
                    merge.put(key, &())?;
                } else {
                    merge.delete(key)?;
                }
            }
            Ok(())
        })?;
        Ok(merge.finish()?.root)
    }

    /// Inline content, extents, extended attributes.
    fn data(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.snapshot_reader.data();
        let mut merge = tree.merge(self.origin(), self.node_size, &mut space);
        let mut before = DataRecords::of(tree);
        self.memtable.each_of(&self.inos, |ino, object| {
            for (key, value) in data_changes(&mut before, ino, object, self.hasher, self.nodes)? {
                match value {
                    Some(value) => merge.put(key, &value.borrowed())?,
                    None => merge.delete(key)?,
                }
            }
            Ok::<(), Error>(())
        })?;
        Ok(merge.finish()?.root)
    }

    /// Calls `each` with every directory that has changed names, ascending.
    fn each_with_names(
        &self,
        mut each: impl FnMut(Ino, &Names) -> tree::Result<()>,
    ) -> tree::Result<()> {
        self.memtable
            .each_of(&self.inos, |ino, object| match object.names() {
                Some(names) => each(ino, names),
                None => Ok(()),
            })
    }
}

fn stored(record: &InodeRecord, space: StoredSpace, next_cookie: u64) -> Inode {
    Inode {
        record: InodeRecord {
            space,
            ..record.clone()
        },
        next_cookie,
        flags: 0,
    }
}

/// A change of a name's hash.
///
/// Ordered by hash and cookie. Packed into one number it sorts several times as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HashChange {
    hash: u32,
    cookie: u64,
    /// Afterwards.
    is_there: bool,
}

impl HashChange {
    fn packed(self) -> u128 {
        u128::from(self.hash) << 96 | u128::from(self.cookie) << 1 | u128::from(self.is_there)
    }

    fn unpacked(packed: u128) -> Self {
        Self {
            hash: (packed >> 96) as u32,
            cookie: (packed >> 1) as u64,
            is_there: packed & 1 == 1,
        }
    }
}

/// The changes of a directory's hashes, ascending.
fn hash_changes(names: &Names, hasher: &NameHasher) -> impl Iterator<Item = HashChange> {
    let mut changes: Vec<u128> = Vec::with_capacity(names.len());
    for place in names.after(0) {
        let now = place.now.map(|now| hasher.hash(now.bytes));
        let cookie = place.cookie;
        let mut push = |hash, is_there| {
            let change = HashChange {
                hash,
                cookie,
                is_there,
            };
            changes.push(change.packed());
        };
        if let Some(gone) = place.gone.filter(|gone| now != Some(*gone)) {
            push(gone, false);
        }
        if let Some(now) = now {
            push(now, true);
        }
    }
    changes.sort_unstable();
    changes.into_iter().map(HashChange::unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_hashes_are_sorted_by_hash_and_then_by_cookie() {
        let change = |hash, cookie, is_there| HashChange {
            hash,
            cookie,
            is_there,
        };
        let ascending = [
            change(0, 3, true),
            change(0, u64::MAX, false),
            change(1, 0, true),
            change(u32::MAX, 2, false),
            change(u32::MAX, u64::MAX, true),
        ];
        let packed = ascending.map(HashChange::packed);
        assert!(packed.is_sorted());
        assert_eq!(packed.map(HashChange::unpacked), ascending);
    }
}
