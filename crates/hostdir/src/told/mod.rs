//! Changes that others make on the host, as inotify(7) tells of them.
//!
//! A directory is watched from the time that something is asked for in it until none of it is known any more: then the host tells of its names, of its own
//! attributes, and of those and the content of what its names lead to. A thread passes that on ([`Changes`]). The operations of this store cause
//! events as well: those that come [while one is under way](own) tell nothing that its own answer would not.
//!
//! *Invariant.* What is [heard of](Told::hears) since a time was watched before it: its event is read after any answer that does not have
//! the change, and what was asked for before an event is read is in doubt.
//!
//! *Not heard of*: files of several names, which others may change by one that is not watched; stores to a mapping, until the file is
//! closed; times of access. Hosts with a server of their own, since others change what is there.
//!
//! *Locking.* The queue before the watches; neither is held while something is asked or told.

mod event;
mod own;
mod thread;
mod watches;

use holdfast_core::store::{Changes, InodeRecord};
use holdfast_core::types::{FileType, Ino, Result};
use parking_lot::{Mutex, RwLock};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Instant;

use crate::attributes::path_of;
use crate::host::{Host, errno};
use event::Queue;
pub(crate) use own::OwnChange;
pub(crate) use thread::start;
use watches::Watches;

/// What is told of a directory.
const WATCHED: inotify::WatchFlags = inotify::WatchFlags::ATTRIB
    .union(inotify::WatchFlags::MODIFY)
    .union(inotify::WatchFlags::CLOSE_WRITE)
    .union(inotify::WatchFlags::CREATE)
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::DELETE_SELF)
    .union(inotify::WatchFlags::MOVE)
    .union(inotify::WatchFlags::MOVE_SELF)
    .union(inotify::WatchFlags::ONLYDIR);

/// File systems that nobody changes but this machine: ext2 to ext4, XFS, btrfs, bcachefs, F2FS, ZFS, JFS, NILFS, tmpfs, ramfs, overlayfs, EROFS,
/// SquashFS, FAT, exFAT, NTFS, UDF, ISO 9660.
const LOCAL: [u64; 18] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xca45_1a4e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0x3153_464a,
    0x3434,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0xe0f5_e1e2,
    0x7371_7368,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
    0x1501_3346,
    0x9660,
];

/// What hears of changes.
pub(crate) struct Told {
    inotify: OwnedFd,
    /// Events that wait in it at most.
    most: usize,
    /// Wakes the thread that passes events on.
    wake: OwnedFd,
    queue: Mutex<Queue>,
    watches: RwLock<Watches>,
    above: OnceLock<Weak<dyn Changes>>,
    /// Does the thread run?
    hears: AtomicBool,
    is_over: AtomicBool,
}

impl Told {
    /// `None`: of what others change on a file system of this type nobody tells.
    ///
    /// # Errors
    /// `EMFILE`: this user has too many instances of inotify. `ENOMEM`.
    pub(crate) fn of(kind: u64) -> Result<Option<Self>> {
        if !LOCAL.contains(&kind) {
            return Ok(None);
        }
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let flags_of_wake = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Some(Self {
            inotify: inotify::init(flags).map_err(errno)?,
            most: event::most(),
            wake: eventfd(0, flags_of_wake).map_err(errno)?,
            queue: Mutex::default(),
            watches: RwLock::new(Watches::new()),
            above: OnceLock::new(),
            hears: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }))
    }

    /// Is the directory watched, and has been since then?
    fn is_watched(&self, dir: Ino, since: Option<Instant>) -> bool {
        let watches = self.watches.read();
        watches
            .since(dir)
            .is_some_and(|from| since.is_none_or(|since| from <= since))
    }

    /// Watches a directory, if there may be one more.
    fn watch(&self, ino: Ino, dir: BorrowedFd<'_>) {
        // Locked over both: else one that is just given up would be found, and be noted when it has ended.
        let mut watches = self.watches.write();
        if watches.has_room()
            && let Ok(watch) = inotify::add_watch(&self.inotify, path_of(dir), WATCHED)
        {
            // What happened before is in all answers to what is asked from now on.
            watches.note(ino, watch);
        }
    }

    /// Are all changes told that were made to what this record says since then?
    fn hears(&self, record: &InodeRecord, since: Instant) -> bool {
        // Relaxed: if it is learned late that nobody listens any more, it is told that all may have changed.
        if !self.hears.load(Ordering::Relaxed) {
            return false;
        }
        let watched = |dir| self.is_watched(dir, Some(since));
        match record.kind {
            FileType::Directory => watched(record.ino) && watched(record.parent),
            _ => record.nlink == 1 && watched(record.parent),
        }
    }

    /// How many directories are watched.
    pub(crate) fn watched(&self) -> usize {
        self.watches.read().len()
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.watches.read().bytes()
    }
}

impl Host {
    /// From now on changes of an inode are told, and of what is in a directory, as far as that is possible.
    pub(crate) fn listen(&self, ino: Ino) {
        let Some(told) = &self.told else { return };
        let Some((dir, parent)) = self.directory_of(ino) else {
            return;
        };
        for dir in [parent, dir] {
            if !told.is_watched(dir, None)
                && let Ok(open) = self.opened(dir)
            {
                told.watch(dir, open.get(self));
            }
        }
    }

    /// The directory that an inode is, or is in, and the one in which that has its name.
    fn directory_of(&self, ino: Ino) -> Option<(Ino, Ino)> {
        if ino == Ino::ROOT {
            return Some((ino, ino));
        }
        let place = self.places.get(ino)?;
        match place.is.kind {
            FileType::Directory => Some((ino, place.parent)),
            _ if place.parent == Ino::ROOT => Some((Ino::ROOT, Ino::ROOT)),
            _ => Some((place.parent, self.places.get(place.parent)?.parent)),
        }
    }

    /// As [`Shared::hears_of`](holdfast_core::store::Shared::hears_of) says.
    pub(crate) fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        self.told
            .as_ref()
            .is_some_and(|told| told.hears(record, since))
    }

    /// The core has let an inode go.
    pub(crate) fn count_let_go(&self) {
        if let Some(told) = &self.told {
            told.watches.read().count_let_go();
        }
    }

    /// Watches no more what is not known any more, when enough was let go.
    pub(crate) fn sweep(&self) {
        let Some(told) = &self.told else { return };
        if !told.watches.read().is_to_sweep() {
            return;
        }
        // Locked over both, as in `watch`.
        let mut watches = told.watches.write();
        let gone = watches.sweep(|ino| ino == Ino::ROOT || self.places.get(ino).is_some());
        for watch in gone {
            // It may have ended by itself.
            let _ = inotify::remove_watch(&told.inotify, watch);
        }
    }
}
