//! What a frozen overlay means for the trees: one sorted merge for each.

use holdfast_core::store::InodeRecord;
use holdfast_types::{FileType, Ino};

use super::REALM;
use super::device::Blocks;
use super::hash::NameHasher;
use super::layers::Roots;
use super::load::Finder;
use super::names::Place;
use super::nodes::NewNodes;
use super::overlay::Overlay;
use super::records::data_changes;
use crate::Result;
use crate::tree::{self, Birth, Cursor, Entry, EntryKey, HashKey, Inode, Inodes, Root, Shape};

/// Everything that the merges need.
pub(super) struct Fold<'f> {
    /// For the trees as they are.
    pub(super) finder: Finder<'f>,
    pub(super) overlay: &'f Overlay,
    /// What changed in it, ascending.
    pub(super) numbers: Vec<Ino>,
    pub(super) hasher: &'f NameHasher,
    pub(super) nodes: &'f NewNodes<'f>,
    /// Of new nodes.
    pub(super) shape: Shape,
}

impl<'f> Fold<'f> {
    fn birth(&self) -> Birth {
        Birth {
            generation: self.nodes.generation(),
            realm: REALM as u32,
        }
    }

    /// All trees.
    pub(super) fn all(&self) -> Result<Roots> {
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
        let tree = self.finder.inodes();
        let mut merge = tree.merge(self.birth(), self.shape, &mut space);
        let mut before = None;
        for (ino, record) in self.records() {
            match record {
                Some(record) => {
                    let next_cookie = self.next_cookie(&record, &mut before)?;
                    merge.put(ino, &stored(record, next_cookie))?;
                }
                None => merge.delete(ino)?,
            }
        }
        Ok(merge.finish()?.root)
    }

    /// What a directory remembers of cookies that names had, so that none comes back.
    fn next_cookie(
        &self,
        record: &InodeRecord,
        before: &mut Option<Cursor<'f, Inodes, Blocks>>,
    ) -> Result<u64> {
        if record.kind != FileType::Directory {
            return Ok(0);
        }
        let remembered = |before| {
            self.overlay.with(record.ino, |object| {
                let names = object.names();
                let now = names.map_or(before, |names| names.remembered(before));
                (now, object.fresh)
            })
        };
        let (now, fresh) = remembered(0).unwrap_or_default();
        if fresh {
            return Ok(now);
        }
        let before = match before {
            Some(before) => before,
            none => none.insert(self.finder.inodes().range(Some(&record.ino))?),
        };
        let old = before.find(&record.ino)?.map_or(0, |old| old.next_cookie);
        Ok(remembered(old).map_or(old, |(now, _)| now))
    }

    /// Inodes without names, once more.
    fn orphans(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.finder.orphans();
        let mut merge = tree.merge(self.birth(), self.shape, &mut space);
        for (ino, record) in self.records() {
            match record {
                Some(record) if record.nlink == 0 => merge.put(ino, &stored(record, 0))?,
                _ => merge.delete(ino)?,
            }
        }
        Ok(merge.finish()?.root)
    }

    /// Names by their places.
    fn entries(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.finder.entries();
        let mut merge = tree.merge(self.birth(), self.shape, &mut space);
        self.each_place(|dir, place| {
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
        })?;
        Ok(merge.finish()?.root)
    }

    /// Places by the names' hashes.
    fn hashes(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.finder.hashes();
        let mut merge = tree.merge(self.birth(), self.shape, &mut space);
        for dir in &self.numbers {
            for (key, is_there) in name_hash_changes(self.overlay, *dir, self.hasher) {
                if is_there {
                    merge.put(key, &())?;
                } else {
                    merge.delete(key)?;
                }
            }
        }
        Ok(merge.finish()?.root)
    }

    /// Content, extents, extended attributes.
    fn data(&self) -> Result<Option<Root>> {
        let mut space = self.nodes;
        let tree = self.finder.data();
        let mut merge = tree.merge(self.birth(), self.shape, &mut space);
        for ino in &self.numbers {
            for (key, value) in data_changes(&self.finder, self.overlay, *ino, self.nodes)? {
                match value {
                    Some(value) => merge.put(key, &value.borrowed())?,
                    None => merge.delete(key)?,
                }
            }
        }
        Ok(merge.finish()?.root)
    }

    /// Attributes that changed; `None`: the inode is no more.
    fn records(&self) -> impl Iterator<Item = (Ino, Option<InodeRecord>)> {
        self.numbers.iter().filter_map(|ino| {
            let record = self.overlay.with(*ino, |object| object.record.clone());
            Some((*ino, record.flatten()?))
        })
    }

    /// Shows every place of a directory that changed, in the order of the entry tree.
    fn each_place(
        &self,
        mut each: impl FnMut(Ino, Place<'_>) -> tree::Result<()>,
    ) -> tree::Result<()> {
        for dir in &self.numbers {
            let shown = self.overlay.with(*dir, |object| {
                let mut places = object.names().into_iter().flat_map(|names| names.after(0));
                places.try_for_each(|place| each(*dir, place))
            });
            shown.unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}

fn stored(record: InodeRecord, next_cookie: u64) -> Inode {
    Inode {
        record,
        next_cookie,
        flags: 0,
    }
}

/// What becomes of a directory's name hashes, ascending: are they there from now on?
fn name_hash_changes(overlay: &Overlay, dir: Ino, hasher: &NameHasher) -> Vec<(HashKey, bool)> {
    let changes = overlay.with(dir, |object| {
        let Some(names) = object.names() else {
            return Vec::new();
        };
        let mut changes = Vec::with_capacity(names.len());
        for place in names.after(0) {
            let now = place.now.map(|now| hasher.hash(now.bytes));
            let key = |hash| HashKey {
                dir,
                hash,
                cookie: place.cookie,
            };
            if let Some(gone) = place.gone.filter(|gone| now != Some(*gone)) {
                changes.push((key(gone), false));
            }
            changes.extend(now.map(|now| (key(now), true)));
        }
        changes
    });
    let mut changes = changes.unwrap_or_default();
    changes.sort_unstable_by_key(|(key, _)| (key.hash, key.cookie));
    changes
}
