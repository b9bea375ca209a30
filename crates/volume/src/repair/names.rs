//! Names: which can stay.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use holdfast_types::{FileType, Ino, Time};

use super::LOST_AND_FOUND;
use super::census::Census;
use super::repair_action::{Deed, Deeds};
use crate::store::hash::NameHasher;
use crate::tree::{Entry, EntryKey};

/// A name, held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) ino: Ino,
    pub(super) kind: FileType,
    pub(super) bytes: Box<[u8]>,
}

impl Name {
    pub(super) fn borrowed(&self) -> Entry<'_> {
        Entry {
            ino: self.ino,
            kind: self.kind,
            name: &self.bytes,
        }
    }
}

/// What becomes of names; `None`: they go.
pub(super) type Changes = BTreeMap<EntryKey, Option<Name>>;

/// What is learnt of the entry tree, in the order of its keys.
pub(super) struct Survey<'s> {
    census: &'s mut Census,
    hasher: NameHasher,
    now: Time,
    pub(super) changes: Changes,
    pub(super) deeds: Deeds,
    /// Names that lead to inodes which are not there.
    pub(super) nowhere: Vec<(EntryKey, Name)>,
    /// The directory `lost+found`, if there is one, and the names in it.
    pub(super) found: Option<Ino>,
    pub(super) found_names: Vec<Box<[u8]>>,
    /// Names of the root that begin like it.
    pub(super) taken: Vec<Box<[u8]>>,
    dir: Option<Ino>,
    /// Names of the directory, by their hashes.
    seen: HashMap<u32, Vec<Box<[u8]>>, RandomState>,
}

/// Can a name be like this?
fn is_name(bytes: &[u8]) -> bool {
    !matches!(bytes, b"" | b"." | b"..") && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'))
}

impl<'s> Survey<'s> {
    pub(super) fn new(census: &'s mut Census, seed: u64, now: Time, most: usize) -> Self {
        Self {
            census,
            hasher: NameHasher::new(seed),
            now,
            changes: Changes::new(),
            deeds: Deeds {
                most,
                ..Deeds::default()
            },
            nowhere: Vec::new(),
            found: None,
            found_names: Vec::new(),
            taken: Vec::new(),
            dir: None,
            seen: HashMap::default(),
        }
    }

    fn remove(&mut self, key: EntryKey, name: &[u8]) {
        self.changes.insert(key, None);
        let (dir, name) = (key.dir, name.into());
        self.deeds.add(Deed::NameRemoved { dir, name });
    }

    /// The next name.
    pub(super) fn record(&mut self, key: EntryKey, entry: Entry<'_>) {
        if self.dir != Some(key.dir) {
            self.dir = Some(key.dir);
            self.seen.clear();
            if self.census.get(key.dir).is_none() {
                // Names were in it, so it was one.
                self.make(key.dir, FileType::Directory);
            }
        }
        if let Some(dir) = self.census.get_mut(key.dir) {
            dir.last_cookie = dir.last_cookie.max(key.cookie);
        }
        let is_dir = |ino| {
            let known = self.census.get(ino);
            known.is_some_and(|known| known.kind() == FileType::Directory)
        };
        let hash = self.hasher.hash(entry.name);
        let alike = self.seen.get(&hash);
        let is_new = !alike.is_some_and(|seen| seen.iter().any(|seen| **seen == *entry.name));
        let can_stay = is_dir(key.dir)
            && is_new
            && is_name(entry.name)
            && key.cookie > 0
            && !matches!(entry.ino, Ino::ROOT | Ino(0))
            && entry.ino != key.dir;
        if !can_stay {
            self.remove(key, entry.name);
            return;
        }
        self.seen.entry(hash).or_default().push(entry.name.into());
        self.look_for_lost_and_found(key.dir, &entry);
        match self.census.get(entry.ino) {
            Some(_) => self.lead(key, entry),
            None => {
                let (ino, kind, bytes) = (entry.ino, entry.kind, entry.name.into());
                self.nowhere.push((key, Name { ino, kind, bytes }));
            }
        }
    }

    fn look_for_lost_and_found(&mut self, dir: Ino, entry: &Entry<'_>) {
        if dir == Ino::ROOT && entry.name.starts_with(LOST_AND_FOUND) {
            self.taken.push(entry.name.into());
            if entry.name == LOST_AND_FOUND && entry.kind == FileType::Directory {
                self.found = Some(entry.ino);
            }
        }
        if Some(dir) == self.found {
            self.found_names.push(entry.name.into());
        }
    }

    /// A name that leads to an inode which is there.
    fn lead(&mut self, key: EntryKey, entry: Entry<'_>) {
        let Some(known) = self.census.get_mut(entry.ino) else {
            return;
        };
        let kind = known.kind();
        let mut loser = None;
        if kind == FileType::Directory {
            // One name is enough: that in the directory which it knows as its parent.
            let parent = known.inode.record.parent;
            loser = match known.place {
                Some(before) if parent == key.dir && parent != before.dir => Some(before),
                Some(_) => Some(key),
                None => None,
            };
            if loser != Some(key) {
                known.place = Some(key);
            }
            known.names = 1;
        } else {
            known.names += 1;
        }
        if let Some(loser) = loser {
            // Of the one before only its place is known.
            let name = if loser == key { entry.name } else { b"" };
            self.remove(loser, name);
        }
        if loser != Some(key) && kind != entry.kind {
            let (ino, bytes) = (entry.ino, entry.name.into());
            let name = Name { ino, kind, bytes };
            self.changes.insert(key, Some(name));
            let (dir, name) = (key.dir, entry.name.into());
            self.deeds.add(Deed::NameChanged { dir, name });
        }
    }

    /// Names whose inodes are not there: those are made anew, as far as they can be. `can_be`: what an
    /// inode contains, is it of this type?
    pub(super) fn lead_nowhere(&mut self, can_be: impl Fn(Ino, FileType) -> bool) {
        for (key, name) in std::mem::take(&mut self.nowhere) {
            let possible = match name.kind {
                FileType::Regular | FileType::Symlink => can_be(name.ino, name.kind),
                FileType::Directory | FileType::Fifo | FileType::Socket => true,
                // Nobody knows which device it was.
                FileType::CharDevice | FileType::BlockDevice => false,
            };
            if self.census.get(name.ino).is_none() && possible {
                self.make(name.ino, name.kind);
                if let Some(known) = self.census.get_mut(name.ino) {
                    known.inode.record.parent = key.dir;
                }
            }
            if self.census.get(name.ino).is_some() {
                self.lead(key, name.borrowed());
            } else {
                self.remove(key, &name.bytes);
            }
        }
    }

    fn make(&mut self, ino: Ino, kind: FileType) {
        let perm = if kind == FileType::Directory {
            0o700
        } else {
            0o600
        };
        self.census.make(ino, kind, perm, self.now);
        self.deeds.add(Deed::InodeMade { ino, kind });
    }
}
