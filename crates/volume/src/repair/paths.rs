//! Paths: connects every directory to the root, and gives nameless inodes a name in `lost+found`.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use holdfast_types::{FileType, Ino, Time};

use super::census::Census;
use super::names::{Changes, LOST_AND_FOUND, LostAndFound, Name};
use super::repair_action::{Action, Actions};
use crate::tree::EntryKey;

/// State for connecting inodes to the root.
pub(super) struct Paths<'p> {
    pub(super) census: &'p mut Census,
    pub(super) names: &'p mut Changes,
    pub(super) actions: &'p mut Actions,
    pub(super) lost: LostAndFound,
    /// The greatest inode number.
    pub(super) last_ino: u64,
    pub(super) now: Time,
}

/// Makes the root a directory and its own parent; creates it unless there are no inodes.
pub(super) fn mend_root(census: &mut Census, actions: &mut Actions, now: Time) {
    if census.is_empty() {
        return;
    }
    let (ino, kind) = (Ino::ROOT, FileType::Directory);
    let is_there = census.get(ino).is_some();
    let root = census.make_unless_there(ino, kind, 0o755, now);
    let before = root.is_changed;
    root.change(|record| {
        if record.kind != kind {
            record.size = 0;
        }
        (record.kind, record.parent) = (kind, ino);
    });
    let changed = root.is_changed && !before;
    if !is_there {
        actions.add(Action::InodeMade { ino, kind });
    } else if changed {
        actions.add(Action::InodeChanged { ino });
    }
}

impl Paths<'_> {
    /// Names every nameless inode in use, and connects every unreachable directory.
    pub(super) fn mend(&mut self) {
        if self.census.is_empty() {
            return;
        }
        mend_root(self.census, self.actions, self.now);
        let all: Vec<Ino> = self.census.iter().map(super::census::Known::ino).collect();
        for ino in all.iter().copied() {
            self.name(ino);
        }
        for ino in all {
            self.reach(ino);
        }
        self.count();
    }

    /// Gives an inode with links but without names a name. An inode without links is an orphan,
    /// unless it is a directory with names in it.
    fn name(&mut self, ino: Ino) {
        let Some(known) = self.census.get(ino) else {
            return;
        };
        if ino == Ino::ROOT || known.names > 0 {
            return;
        }
        let is_filled = known.kind() == FileType::Directory && known.last_cookie > 0;
        if known.inode.record.nlink > 0 || is_filled || known.is_new {
            self.keep(ino);
        }
    }

    /// Follows the path up from a directory; if it does not reach the root, moves its end to
    /// `lost+found`.
    fn reach(&mut self, ino: Ino) {
        let is_directory = |known: &super::census::Known| known.kind() == FileType::Directory;
        let mut way: HashSet<Ino, RandomState> = HashSet::default();
        let mut at = ino;
        while let Some(known) = self.census.get(at)
            && is_directory(known)
            && !known.is_reached
            && at != Ino::ROOT
        {
            if !way.insert(at) {
                // A circle: cut here.
                if let Some(place) = known.place {
                    self.names.insert(place, None);
                    let (dir, name) = (place.dir, Box::default());
                    self.actions.add(Action::NameRemoved { dir, name });
                }
                self.keep(at);
                break;
            }
            match known.place {
                Some(place) => at = place.dir,
                None => break,
            }
        }
        for ino in way {
            if let Some(known) = self.census.get_mut(ino) {
                known.is_reached = true;
            }
        }
    }

    /// Gives the inode a name in `lost+found`.
    fn keep(&mut self, ino: Ino) {
        let Some(found) = self.lost_and_found() else {
            return;
        };
        if ino == found {
            return;
        }
        let mut name = format!("#{ino}");
        while self
            .lost
            .names
            .iter()
            .any(|known| **known == *name.as_bytes())
        {
            name.push('+');
        }
        self.lost.names.push(name.as_bytes().into());
        self.enter(found, name.as_bytes(), ino);
        self.actions.add(Action::Found { ino, name });
    }

    fn lost_and_found(&mut self) -> Option<Ino> {
        let is_directory = |ino: &Ino| {
            let known = self.census.get(*ino);
            known.is_some_and(|known| known.kind() == FileType::Directory)
        };
        if self.lost.dir.as_ref().is_some_and(is_directory) {
            return self.lost.dir;
        }
        self.last_ino = self.last_ino.checked_add(1)?;
        let ino = Ino(self.last_ino);
        let kind = FileType::Directory;
        self.census.make_unless_there(ino, kind, 0o700, self.now);
        self.actions.add(Action::InodeMade { ino, kind });
        let mut name = LOST_AND_FOUND.to_vec();
        while self.lost.root_names.iter().any(|taken| **taken == *name) {
            name.push(b'+');
        }
        self.enter(Ino::ROOT, &name, ino);
        self.lost.dir = Some(ino);
        self.lost.dir
    }

    fn enter(&mut self, dir: Ino, name: &[u8], ino: Ino) {
        let Some(known) = self.census.get_mut(dir) else {
            return;
        };
        let cookie = known
            .last_cookie
            .max(known.inode.next_cookie.saturating_sub(1))
            .max(2)
            + 1;
        known.last_cookie = cookie;
        let key = EntryKey { dir, cookie };
        let Some(known) = self.census.get_mut(ino) else {
            return;
        };
        known.change(|record| record.parent = dir);
        let kind = known.kind();
        known.names = 1;
        if kind == FileType::Directory {
            known.place = Some(key);
        }
        let bytes = name.into();
        self.names.insert(key, Some(Name { ino, kind, bytes }));
    }

    /// Sets links and parents by the names.
    fn count(&mut self) {
        let inside: Vec<Ino> = self
            .census
            .iter()
            .filter_map(|known| known.place.map(|place| place.dir))
            .collect();
        for dir in inside {
            if let Some(dir) = self.census.get_mut(dir) {
                dir.directories += 1;
            }
        }
        for known in self.census.iter_mut() {
            let is_directory = known.kind() == FileType::Directory;
            let is_root = known.ino() == Ino::ROOT;
            let links = match (is_directory, known.names > 0 || is_root) {
                (true, true) => known.directories.saturating_add(2),
                (true, false) => 0,
                (false, _) => known.names,
            };
            let parent = match known.place {
                Some(place) => place.dir,
                None => known.inode.record.parent,
            };
            let (before, is_new) = (known.is_changed, known.is_new);
            known.change(|record| {
                record.nlink = links;
                record.parent = parent;
            });
            if known.is_changed && !before && !is_new {
                let ino = known.ino();
                self.actions.add(Action::InodeChanged { ino });
            }
        }
    }
}
