//! All inodes, with the evidence of names and content.

use std::collections::BTreeMap;

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};

use crate::check::file_flags;
use crate::tree::{EntryKey, Inode};

/// An inode, and what the walks over the trees found of it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) inode: Inode,
    /// The number of its names.
    pub(super) names: u32,
    /// The number of subdirectories in it.
    pub(super) directories: u32,
    /// The key of a directory's name.
    pub(super) place: Option<EntryKey>,
    /// A directory's greatest cookie.
    pub(super) last_cookie: u64,
    /// The length of its inline content, if it has any.
    pub(super) length: Option<u64>,
    /// Blocks of its extents.
    pub(super) blocks: u64,
    /// A path from the root leads to it.
    pub(super) is_reached: bool,
    /// It differs from its record in the tree.
    pub(super) is_changed: bool,
    /// It is not in the tree.
    pub(super) is_new: bool,
}

impl Known {
    pub(super) fn new(inode: Inode) -> Self {
        Self {
            inode,
            names: 0,
            directories: 0,
            place: None,
            last_cookie: 0,
            length: None,
            blocks: 0,
            is_reached: false,
            is_changed: false,
            is_new: false,
        }
    }

    pub(super) fn kind(&self) -> FileType {
        self.inode.record.kind
    }

    pub(super) fn ino(&self) -> Ino {
        self.inode.record.ino
    }

    /// Changes the record, and sets `is_changed` if it differs.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut InodeRecord)) {
        let before = self.inode.record.clone();
        change(&mut self.inode.record);
        self.is_changed |= before != self.inode.record;
    }
}

/// All inodes: those of the tree sorted in a vector, the others beside it.
#[derive(Debug, Default)]
pub(super) struct Census {
    row: Vec<Known>,
    made: BTreeMap<Ino, Known>,
}

impl Census {
    /// Adds the next inode of the tree; numbers ascend.
    pub(super) fn push(&mut self, inode: Inode) {
        self.row.push(Known::new(inode));
    }

    pub(super) fn get(&self, ino: Ino) -> Option<&Known> {
        match self.row.binary_search_by_key(&ino, Known::ino) {
            Ok(index) => self.row.get(index),
            Err(_) => self.made.get(&ino),
        }
    }

    pub(super) fn get_mut(&mut self, ino: Ino) -> Option<&mut Known> {
        match self.row.binary_search_by_key(&ino, Known::ino) {
            Ok(index) => self.row.get_mut(index),
            Err(_) => self.made.get_mut(&ino),
        }
    }

    /// Corrects the recorded space and flags. Returns the inodes that were wrong.
    pub(super) fn finish(&mut self) -> Vec<Ino> {
        let mut settled = self.correct_spaces();
        settled.extend(self.correct_flags());
        settled
    }

    /// Corrects the recorded space of files. Returns those that were wrong.
    fn correct_spaces(&mut self) -> Vec<Ino> {
        let mut wrong = Vec::new();
        for known in self.iter_mut() {
            let record = &known.inode.record;
            if record.kind != FileType::Regular {
                continue;
            }
            let space = match known.length {
                Some(_) => StoredSpace::AS_SIZE,
                None => StoredSpace::of(known.blocks, record.size),
            };
            if known.inode.record.space != space {
                let is_new = known.is_new;
                known.change(|record| record.space = space);
                wrong.extend((!is_new).then(|| known.ino()));
            }
        }
        wrong
    }

    /// Removes file flags that an inode cannot have. Returns the inodes that had any.
    fn correct_flags(&mut self) -> Vec<Ino> {
        let mut wrong = Vec::new();
        for known in self.iter_mut() {
            let record = &known.inode.record;
            let flags = file_flags(record);
            if record.flags != flags {
                known.change(|record| record.flags = flags);
                wrong.push(known.ino());
            }
        }
        wrong
    }

    pub(super) fn is_empty(&self) -> bool {
        self.row.is_empty() && self.made.is_empty()
    }

    /// The greatest number, 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        let row = self.row.last().map_or(0, |known| known.ino().0);
        let made = self.made.last_key_value().map_or(0, |(ino, _)| ino.0);
        row.max(made)
    }

    /// Adds an inode that is not in the tree.
    pub(super) fn make(&mut self, ino: Ino, kind: FileType, perm: u16, now: Time) -> &mut Known {
        let record = InodeRecord {
            ino,
            kind,
            perm,
            nlink: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            parent: Ino::ROOT,
            // Unknown, so set.
            xattrs: true,
            space: StoredSpace::UNKNOWN,
            flags: FileFlags::empty(),
            project: 0,
        };
        let mut known = Known::new(Inode {
            record,
            next_cookie: 0,
            flags: 0,
        });
        (known.is_new, known.is_changed) = (true, true);
        self.made.entry(ino).or_insert(known)
    }

    /// Like [`make`](Self::make), unless the inode exists.
    pub(super) fn make_unless_there(
        &mut self,
        ino: Ino,
        kind: FileType,
        perm: u16,
        now: Time,
    ) -> &mut Known {
        match self.row.binary_search_by_key(&ino, Known::ino) {
            Ok(index) => &mut self.row[index],
            Err(_) => self.make(ino, kind, perm, now),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Known> {
        self.row.iter().chain(self.made.values())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Known> {
        self.row.iter_mut().chain(self.made.values_mut())
    }
}
