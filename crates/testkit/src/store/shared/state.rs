//! What a shared store holds.

use super::super::pages::PageMap;
use holdfast_core::store::{InodeRecord, StoredSpace, Version};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// What every empty directory's size is, and each name's share.
const DIR_SIZE: u64 = 40;
const ENTRY_SIZE: u64 = 20;

/// What a [`SharedStore`](super::SharedStore) holds, at one time.
#[derive(Clone, Debug, Default)]
pub struct SharedState {
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) last: u64,
    /// The latest time: each change has its own.
    pub(super) time: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    /// Of a directory and of a file without what follows from the rest.
    record: InodeRecord,
    pub(super) pages: PageMap,
    /// `None`: it is no directory.
    pub(super) names: Option<BTreeMap<Box<[u8]>, Ino>>,
    pub(super) target: Option<Box<[u8]>>,
    pub(super) xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// How often it is open.
    pub(super) open: u32,
}

impl Inode {
    pub(super) fn meta(&mut self) -> &mut InodeRecord {
        &mut self.record
    }

    pub(super) fn nlink(&self) -> u32 {
        self.record.nlink
    }

    pub(super) fn record(&self) -> InodeRecord {
        let mut record = self.record.clone();
        record.xattrs = !self.xattrs.is_empty() || self.pages.is_behind(record.size);
        match &self.names {
            Some(names) => record.size = DIR_SIZE + ENTRY_SIZE * names.len() as u64,
            None => record.space = StoredSpace::of(self.pages.count(), record.size),
        }
        record
    }

    pub(super) fn version(&self) -> Version {
        Version::of(&self.record())
    }
}

impl SharedState {
    /// The number that a name of a directory leads to.
    #[must_use]
    pub fn child(&self, dir: Ino, name: &[u8]) -> Option<Ino> {
        let names = self.inodes.get(&dir)?.names.as_ref()?;
        names.get(name).copied()
    }

    /// The names that an inode has; `None`: there is none of this number.
    #[must_use]
    pub fn nlink(&self, ino: Ino) -> Option<u32> {
        self.inodes.get(&ino).map(Inode::nlink)
    }

    /// The bytes of a file; `None`: there is none of this number.
    #[must_use]
    pub fn content(&self, ino: Ino) -> Option<Vec<u8>> {
        let inode = self.inodes.get(&ino)?;
        let mut content = vec![0; usize::try_from(inode.record.size).ok()?];
        inode.pages.read(0, &mut content);
        Some(content)
    }

    /// The names of a directory, in order.
    #[must_use]
    pub fn names(&self, dir: Ino) -> Vec<Box<[u8]>> {
        let names = self.inodes.get(&dir).and_then(|dir| dir.names.as_ref());
        names.map_or_else(Vec::new, |names| names.keys().cloned().collect())
    }

    /// The present time, later than that of any change.
    pub(super) fn tick(&mut self) -> Time {
        self.time = Time::from(SystemTime::now()).0.max(self.time + 1);
        Time(self.time)
    }

    /// A new inode without a name.
    pub(super) fn make_unnamed(&mut self, kind: FileType, perm: u16) -> Ino {
        let time = self.tick();
        self.last += 1;
        let ino = Ino(self.last);
        let record = InodeRecord {
            ino,
            kind,
            perm,
            nlink: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
            parent: Ino::ROOT,
            xattrs: false,
            space: StoredSpace::AS_SIZE,
            flags: FileFlags::empty(),
            project: 0,
        };
        let inode = Inode {
            record,
            pages: PageMap::default(),
            names: kind.is_dir().then(BTreeMap::new),
            target: None,
            xattrs: BTreeMap::new(),
            open: 0,
        };
        self.inodes.insert(ino, inode);
        ino
    }

    pub(super) fn make(&mut self, dir: Ino, name: &[u8], kind: FileType) -> Ino {
        let ino = self.make_unnamed(kind, 0o755);
        self.enter(dir, name, ino);
        ino
    }

    /// A name, which is free, leads to an inode.
    pub(super) fn enter(&mut self, dir: Ino, name: &[u8], ino: Ino) {
        let time = self.changed(dir);
        let below = self.directories_in(ino);
        let mut is_dir = false;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            is_dir = inode.names.is_some();
            inode.record.nlink = match is_dir {
                true => 2 + below,
                false => inode.record.nlink + 1,
            };
            (inode.record.parent, inode.record.ctime) = (dir, time);
        }
        if let Some(parent) = self.inodes.get_mut(&dir) {
            parent.record.nlink += u32::from(is_dir);
            let names = parent.names.get_or_insert_default();
            names.insert(name.into(), ino);
        }
    }

    /// How many directories a directory has: one that is moved takes them along.
    fn directories_in(&self, dir: Ino) -> u32 {
        let names = self.inodes.get(&dir).and_then(|dir| dir.names.as_ref());
        let is_dir = |ino: &&Ino| self.inodes.get(ino).is_some_and(|it| it.names.is_some());
        names.map_or(0, |names| names.values().filter(is_dir).count() as u32)
    }

    /// A name leads nowhere any more; what it led to may have no name any more.
    pub(super) fn leave(&mut self, dir: Ino, name: &[u8]) -> Option<Ino> {
        let names = self.inodes.get_mut(&dir)?.names.as_mut()?;
        let ino = names.remove(name)?;
        let time = self.changed(dir);
        let mut is_dir = false;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            is_dir = inode.names.is_some();
            inode.record.nlink = match is_dir {
                true => 0,
                false => inode.record.nlink.saturating_sub(1),
            };
            inode.record.ctime = time;
        }
        if let Some(parent) = self.inodes.get_mut(&dir) {
            parent.record.nlink = parent.record.nlink.saturating_sub(u32::from(is_dir));
        }
        Some(ino)
    }

    /// Forgets an inode that has neither a name nor a use.
    pub(super) fn tidy(&mut self, ino: Ino, is_known: bool) {
        let is_used = |inode: &Inode| inode.nlink() > 0 || inode.open > 0;
        if !is_known && self.inodes.get(&ino).is_some_and(|inode| !is_used(inode)) {
            self.inodes.remove(&ino);
        }
    }

    /// The content of an inode, or its names, change now.
    pub(super) fn changed(&mut self, ino: Ino) -> Time {
        let time = self.tick();
        if let Some(inode) = self.inodes.get_mut(&ino) {
            (inode.record.mtime, inode.record.ctime) = (time, time);
        }
        time
    }

    pub(super) fn record(&self, ino: Ino) -> Option<InodeRecord> {
        self.inodes.get(&ino).map(Inode::record)
    }
}
