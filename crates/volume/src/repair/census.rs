//! All inodes, with what names and content say of them.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};

use crate::check::file_flags;
use crate::tree::{EntryKey, Inode};

/// An inode, and what was seen of it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) inode: Inode,
    /// Names that lead to it.
    pub(super) names: u32,
    /// Directories with names in it.
    pub(super) directories: u32,
    /// A directory's name.
    pub(super) place: Option<EntryKey>,
    /// A directory's greatest cookie.
    pub(super) last_cookie: u64,
    /// Its length is known from what it contains.
    pub(super) length: Option<u64>,
    /// Blocks of its extents.
    pub(super) blocks: u64,
    /// A path leads to it.
    pub(super) is_reached: bool,
    /// It differs from what the tree has.
    pub(super) is_changed: bool,
    /// The tree does not have it.
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

    /// Changes attributes, and remembers whether they did.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut InodeRecord)) {
        let before = self.inode.record.clone();
        change(&mut self.inode.record);
        self.is_changed |= before != self.inode.record;
    }
}

/// All of them: those of the tree in a row, others beside it.
#[derive(Debug, Default)]
pub(super) struct Census {
    row: Vec<Known>,
    made: BTreeMap<Ino, Known>,
    /// Those that the orphan tree has.
    pub(super) orphans: BTreeSet<Ino>,
}

impl Census {
    /// The next one of the tree, whose numbers ascend.
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

    /// Lets inodes say what they may. Returns those that said something else.
    pub(super) fn settle(&mut self) -> Vec<Ino> {
        let mut settled = self.settle_spaces();
        settled.extend(self.settle_flags());
        settled
    }

    /// Lets files say the space that they take. Returns those that said another one.
    fn settle_spaces(&mut self) -> Vec<Ino> {
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

    /// Takes the file flags away that an inode cannot have. Returns those that had any.
    fn settle_flags(&mut self) -> Vec<Ino> {
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

    /// Makes an inode that the tree does not have.
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
            // Perhaps.
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

    /// As [`make`](Self::make), unless the number has an inode.
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
