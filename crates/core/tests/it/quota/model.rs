//! A file system with quotas, as plain sets.

use super::{Usage, add};
use holdfast_core::QuotaKind;
use holdfast_core::types::{Errno, FileType, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::PAGE;

/// An inode.
pub(super) struct Thing {
    pub(super) kind: FileType,
    pub(super) owner: (u32, u32),
    pub(super) pages: BTreeSet<u64>,
    pub(super) size: u64,
    pub(super) nlink: u32,
    /// Open files.
    pub(super) uses: u32,
    /// May an unnamed file get a name?
    pub(super) linkable: bool,
}

/// A directory's number and a name in it.
pub(super) type Place = (usize, u8);

/// The whole file system.
#[derive(Default)]
pub(super) struct Model {
    things: BTreeMap<usize, Thing>,
    made: usize,
    pub(super) names: BTreeMap<Place, usize>,
    /// While quotas are on: hard limits.
    pub(super) limits: Option<BTreeMap<(QuotaKind, u32), (u64, u64)>>,
    /// The store's limits.
    pub(super) store: Option<(u64, u64)>,
}

impl Model {
    /// With `inodes` inodes of the superuser.
    pub(super) fn new(inodes: usize) -> Self {
        let mut model = Self::default();
        for _ in 0..inodes {
            let root = model.add(FileType::Directory, (0, 0));
            model.thing(root).nlink = 2;
        }
        model
    }

    pub(super) fn thing(&mut self, id: usize) -> &mut Thing {
        self.things.get_mut(&id).unwrap()
    }

    fn add(&mut self, kind: FileType, owner: (u32, u32)) -> usize {
        self.made += 1;
        let thing = Thing {
            kind,
            owner,
            pages: BTreeSet::new(),
            size: 0,
            nlink: 0,
            uses: 0,
            linkable: false,
        };
        self.things.insert(self.made, thing);
        self.made
    }

    /// The usage of each user and group.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage::new();
        for thing in self.things.values() {
            add(&mut usage, thing.owner, thing.pages.len() as u64);
        }
        usage
    }

    /// Pages and inodes that this account may still get.
    fn room_of(&self, account: (QuotaKind, u32)) -> (u64, u64) {
        let limits = self.limits.as_ref();
        let limit = limits.and_then(|limits| limits.get(&account));
        let Some(&(pages, inodes)) = limit else {
            return (u64::MAX, u64::MAX);
        };
        let used = self.usage().get(&account).copied().unwrap_or_default();
        (pages.saturating_sub(used.0), inodes.saturating_sub(used.1))
    }

    /// Pages and inodes that this owner may still get.
    fn room(&self, (uid, gid): (u32, u32), privileged: bool) -> (u64, u64) {
        if privileged {
            return (u64::MAX, u64::MAX);
        }
        let user = self.room_of((QuotaKind::User, uid));
        let group = self.room_of((QuotaKind::Group, gid));
        (user.0.min(group.0), user.1.min(group.1))
    }

    /// Pages and inodes that are free in the store.
    fn free(&self) -> (u64, u64) {
        let Some((pages, inodes)) = self.store else {
            return (u64::MAX, u64::MAX);
        };
        let held: usize = self.things.values().map(|thing| thing.pages.len()).sum();
        (pages - held as u64, inodes - self.things.len() as u64)
    }

    /// Creates an inode.
    pub(super) fn make(
        &mut self,
        kind: FileType,
        owner: (u32, u32),
        privileged: bool,
    ) -> Result<usize> {
        if self.free().1 == 0 {
            return Err(Errno::ENOSPC);
        }
        if self.room(owner, privileged).1 == 0 {
            return Err(Errno::EDQUOT);
        }
        Ok(self.add(kind, owner))
    }

    pub(super) fn enter(&mut self, place: Place, id: usize) {
        assert!(self.names.insert(place, id).is_none());
        let thing = self.thing(id);
        thing.nlink += 1;
        thing.linkable = false;
    }

    pub(super) fn leave(&mut self, place: Place) -> usize {
        let id = self.names.remove(&place).unwrap();
        self.thing(id).nlink -= 1;
        self.settle(id);
        id
    }

    pub(super) fn close(&mut self, id: usize) {
        self.thing(id).uses -= 1;
        self.settle(id);
    }

    fn settle(&mut self, id: usize) {
        let thing = self.thing(id);
        if thing.nlink == 0 && thing.uses == 0 {
            self.things.remove(&id);
        }
    }

    /// The pages of a range that the file does not have.
    fn missing(&mut self, id: usize, pages: Range<u64>) -> Vec<u64> {
        let held = &self.thing(id).pages;
        pages.filter(|page| !held.contains(page)).collect()
    }

    pub(super) fn write(&mut self, id: usize, at: u64, len: u64, privileged: bool) -> Result<u64> {
        let owner = self.thing(id).owner;
        let missing = self.missing(id, at / PAGE..(at + len).div_ceil(PAGE));
        let (room, free) = (self.room(owner, privileged).0, self.free().0);
        let fit = room.min(free) as usize;
        let end = missing.get(fit).map_or(at + len, |page| page * PAGE);
        if end <= at {
            return Err(if room == 0 {
                Errno::EDQUOT
            } else {
                Errno::ENOSPC
            });
        }
        let thing = self.thing(id);
        thing.pages.extend(at / PAGE..end.div_ceil(PAGE));
        thing.size = thing.size.max(end);
        Ok(end - at)
    }

    /// Allocates a range, all or nothing.
    pub(super) fn allocate(
        &mut self,
        id: usize,
        at: u64,
        len: u64,
        privileged: bool,
    ) -> Result<()> {
        let owner = self.thing(id).owner;
        let pages = at / PAGE..(at + len).div_ceil(PAGE);
        let missing = self.missing(id, pages.clone()).len() as u64;
        if missing > self.room(owner, privileged).0 {
            return Err(Errno::EDQUOT);
        }
        if missing > self.free().0 {
            return Err(Errno::ENOSPC);
        }
        self.thing(id).pages.extend(pages);
        Ok(())
    }

    pub(super) fn truncate(&mut self, id: usize, size: u64) {
        let thing = self.thing(id);
        if size <= thing.size {
            thing.pages.retain(|page| *page < size.div_ceil(PAGE));
        }
        thing.size = size;
    }

    pub(super) fn punch(&mut self, id: usize, at: u64, len: u64) {
        let gone = at.div_ceil(PAGE)..(at + len) / PAGE;
        self.thing(id).pages.retain(|page| !gone.contains(page));
    }

    /// Removes whole pages; later ones move down.
    pub(super) fn collapse(&mut self, id: usize, pages: &Range<u64>) {
        let thing = self.thing(id);
        let moved = |page: &u64| match *page {
            page if page < pages.start => Some(page),
            page if page < pages.end => None,
            page => Some(page - (pages.end - pages.start)),
        };
        thing.pages = thing.pages.iter().filter_map(moved).collect();
        thing.size -= (pages.end - pages.start) * PAGE;
    }

    /// Inserts a hole of whole pages; later ones move up.
    pub(super) fn insert(&mut self, id: usize, pages: &Range<u64>) {
        let thing = self.thing(id);
        let moved = |page: &u64| match *page {
            page if page < pages.start => page,
            page => page + (pages.end - pages.start),
        };
        thing.pages = thing.pages.iter().map(moved).collect();
        thing.size += (pages.end - pages.start) * PAGE;
    }

    pub(super) fn chown(&mut self, id: usize, new: (u32, u32), privileged: bool) -> Result<()> {
        let thing = self.thing(id);
        let (old, pages) = (thing.owner, thing.pages.len() as u64);
        let refuses = |model: &Self, account| {
            let room = model.room_of(account);
            pages > room.0 || room.1 == 0
        };
        if !privileged
            && (old.0 != new.0 && refuses(self, (QuotaKind::User, new.0))
                || old.1 != new.1 && refuses(self, (QuotaKind::Group, new.1)))
        {
            return Err(Errno::EDQUOT);
        }
        self.thing(id).owner = new;
        Ok(())
    }
}
