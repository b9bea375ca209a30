//! Names: the ones that stay.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use holdfast_types::{FileType, Ino, Time};

use super::census::Census;
use super::repair_action::{Action, Actions};
use crate::check::is_name;
use crate::store::NameHasher;
use crate::tree::{Entry, EntryKey};

/// The directory for inodes without a name.
pub(super) const LOST_AND_FOUND: &[u8] = b"lost+found";

/// An owned name.
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

/// Changes of names; `None` deletes.
pub(super) type Changes = BTreeMap<EntryKey, Option<Name>>;

/// The directory `lost+found`, and names that are taken.
#[derive(Default)]
pub(super) struct LostAndFound {
    pub(super) dir: Option<Ino>,
    /// The names in it.
    pub(super) names: Vec<Box<[u8]>>,
    /// Names of the root that begin with `lost+found`.
    pub(super) root_names: Vec<Box<[u8]>>,
}

/// The survey of the entry tree, in the order of its keys.
pub(super) struct Survey<'s> {
    census: &'s mut Census,
    hasher: NameHasher,
    now: Time,
    pub(super) changes: Changes,
    actions: &'s mut Actions,
    /// Names of missing inodes.
    pub(super) dangling: Vec<(EntryKey, Name)>,
    pub(super) lost: LostAndFound,
    dir: Option<Ino>,
    /// Names of the current directory, by hash.
    seen: HashMap<u32, Vec<Box<[u8]>>, RandomState>,
}

impl<'s> Survey<'s> {
    pub(super) fn new(
        census: &'s mut Census,
        actions: &'s mut Actions,
        seed: u64,
        now: Time,
    ) -> Self {
        Self {
            census,
            hasher: NameHasher::new(seed),
            now,
            changes: Changes::new(),
            actions,
            dangling: Vec::new(),
            lost: LostAndFound::default(),
            dir: None,
            seen: HashMap::default(),
        }
    }

    fn remove(&mut self, key: EntryKey, name: &[u8]) {
        self.changes.insert(key, None);
        let (dir, name) = (key.dir, name.into());
        self.actions.add(Action::NameRemoved { dir, name });
    }

    /// Examines the next name.
    pub(super) fn record(&mut self, key: EntryKey, entry: Entry<'_>) {
        if self.dir != Some(key.dir) {
            self.dir = Some(key.dir);
            self.seen.clear();
            if self.census.get(key.dir).is_none() {
                // It has names, so it was a directory.
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
            Some(_) => self.count(key, entry),
            None => {
                let (ino, kind, bytes) = (entry.ino, entry.kind, entry.name.into());
                self.dangling.push((key, Name { ino, kind, bytes }));
            }
        }
    }

    fn look_for_lost_and_found(&mut self, dir: Ino, entry: &Entry<'_>) {
        if dir == Ino::ROOT && entry.name.starts_with(LOST_AND_FOUND) {
            self.lost.root_names.push(entry.name.into());
            if entry.name == LOST_AND_FOUND && entry.kind == FileType::Directory {
                self.lost.dir = Some(entry.ino);
            }
        }
        if Some(dir) == self.lost.dir {
            self.lost.names.push(entry.name.into());
        }
    }

    /// Counts a name of an existing inode.
    fn count(&mut self, key: EntryKey, entry: Entry<'_>) {
        let Some(known) = self.census.get_mut(entry.ino) else {
            return;
        };
        let kind = known.kind();
        let mut loser = None;
        if kind == FileType::Directory {
            // A directory keeps one name: the one in its recorded parent.
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
            // The bytes of the previous name are not known here, only its key.
            let name = if loser == key { entry.name } else { b"" };
            self.remove(loser, name);
        }
        if loser != Some(key) && kind != entry.kind {
            let (ino, bytes) = (entry.ino, entry.name.into());
            let name = Name { ino, kind, bytes };
            self.changes.insert(key, Some(name));
            let (dir, name) = (key.dir, entry.name.into());
            self.actions.add(Action::NameChanged { dir, name });
        }
    }

    /// Makes missing inodes of names anew, as far as possible. `can_be`: does an inode's content
    /// allow this type?
    pub(super) fn count_dangling(
        &mut self,
        dangling: Vec<(EntryKey, Name)>,
        can_be: impl Fn(Ino, FileType) -> bool,
    ) {
        for (key, name) in dangling {
            let possible = match name.kind {
                FileType::Regular | FileType::Symlink => can_be(name.ino, name.kind),
                FileType::Directory | FileType::Fifo | FileType::Socket => true,
                // The device number is lost.
                FileType::CharDevice | FileType::BlockDevice => false,
            };
            if self.census.get(name.ino).is_none() && possible {
                self.make(name.ino, name.kind);
                if let Some(known) = self.census.get_mut(name.ino) {
                    known.inode.record.parent = key.dir;
                }
            }
            if self.census.get(name.ino).is_some() {
                self.count(key, name.borrowed());
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
        self.actions.add(Action::InodeMade { ino, kind });
    }
}
