//! Notifications of changes by others on the host, by inotify(7).
//!
//! A directory is watched from the first request in it until none of its inodes is known. The host
//! then reports changes of its names, its attributes, and of attributes and content of its files. A
//! thread passes these on ([`Changes`]). Operations of this store cause events too. Events [during
//! an operation](own) are dropped if its own answer includes their change.
//!
//! *Invariant.* What is [heard of](Watcher::hears) since a time was watched before it. The event is
//! read after every answer that lacks the change. An answer to a request of before the event is in
//! doubt.
//!
//! *Not heard of*: files with several names, which others may change by an unwatched one; stores to
//! a mapping before the file is closed; access times. Hosts with a server are never watched,
//! because others change what is there.
//!
//! *Locking.* The queue before the watches; neither is held during calls to the host or the core.

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

/// Events of a directory.
const WATCHED: inotify::WatchFlags = inotify::WatchFlags::ATTRIB
    .union(inotify::WatchFlags::MODIFY)
    .union(inotify::WatchFlags::CLOSE_WRITE)
    .union(inotify::WatchFlags::CREATE)
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::DELETE_SELF)
    .union(inotify::WatchFlags::MOVE)
    .union(inotify::WatchFlags::MOVE_SELF)
    .union(inotify::WatchFlags::ONLYDIR);

/// File systems that only this machine changes: ext2 to ext4, XFS, btrfs, bcachefs, F2FS, ZFS, JFS,
/// NILFS, tmpfs, ramfs, overlayfs, EROFS, SquashFS, FAT, exFAT, NTFS, UDF, ISO 9660.
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

/// The inotify instance and its queue.
pub(crate) struct Watcher {
    inotify: OwnedFd,
    /// Most events in the kernel's queue.
    most: usize,
    /// Wakes the thread.
    wake: OwnedFd,
    queue: Mutex<Queue>,
    watches: RwLock<Watches>,
    above: OnceLock<Weak<dyn Changes>>,
    /// Does the thread run?
    hears: AtomicBool,
    is_over: AtomicBool,
}

impl Watcher {
    /// `None`: changes by others on a file system of this type are not all reported.
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

    /// Is the directory watched, since `since` or longer?
    fn is_watched(&self, dir: Ino, since: Option<Instant>) -> bool {
        let watches = self.watches.read();
        watches
            .since(dir)
            .is_some_and(|from| since.is_none_or(|since| from <= since))
    }

    /// Watches a directory, if the limit allows.
    fn watch(&self, ino: Ino, dir: BorrowedFd<'_>) {
        // Locked over both: otherwise a watch that is being removed could be found and stored after
        // its end.
        let mut watches = self.watches.write();
        if watches.has_room()
            && let Ok(watch) = inotify::add_watch(&self.inotify, path_of(dir), WATCHED)
        {
            // Earlier changes are in all answers to requests from now on.
            watches.note(ino, watch);
        }
    }

    /// Are all changes of this record since then reported?
    fn hears(&self, record: &InodeRecord, since: Instant) -> bool {
        // Relaxed: when the thread ends, it reports that everything may have changed.
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

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.watches.read().bytes()
    }
}

impl Host {
    /// Watches an inode, and the content of a directory, as far as possible.
    pub(crate) fn listen(&self, ino: Ino) {
        let Some(watcher) = &self.watcher else { return };
        let Some((dir, parent)) = self.directory_of(ino) else {
            return;
        };
        for dir in [parent, dir] {
            if !watcher.is_watched(dir, None)
                && let Ok(open) = self.opened(dir)
            {
                watcher.watch(dir, open.get(self));
            }
        }
    }

    /// The directory that the inode is or is in, and the parent of that.
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

    /// See [`Shared::hears_of`](holdfast_core::store::Shared::hears_of).
    pub(crate) fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        self.watcher
            .as_ref()
            .is_some_and(|watcher| watcher.hears(record, since))
    }

    /// The core has dropped an inode.
    pub(crate) fn count_let_go(&self) {
        if let Some(watcher) = &self.watcher {
            watcher.watches.read().count_let_go();
        }
    }

    /// Removes the watches of unknown directories, when enough inodes were dropped.
    pub(crate) fn sweep(&self) {
        let Some(watcher) = &self.watcher else { return };
        if !watcher.watches.read().is_to_sweep() {
            return;
        }
        // Locked over both, as in `watch`.
        let mut watches = watcher.watches.write();
        let gone = watches.sweep(|ino| ino == Ino::ROOT || self.places.get(ino).is_some());
        for watch in gone {
            // The kernel may have removed it.
            let _ = inotify::remove_watch(&watcher.inotify, watch);
        }
    }
}
