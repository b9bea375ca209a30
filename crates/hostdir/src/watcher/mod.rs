//! Notifications of changes by others on the host, by inotify(7).
//!
//! A directory is watched from the first request in it until none of its inodes is known. The host
//! then reports changes of its names, its attributes, and of attributes and content of its files. A
//! thread passes these on ([`Changes`]). Operations of this store cause events too. Events [during
//! an operation](operation) are dropped if its own answer includes their change.
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

mod listen;
pub(crate) mod operation;
mod own;
mod queue;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
mod watches;

use holdfast_core::store::{Changes, InodeRecord};
use holdfast_core::types::{FileType, Ino};
use parking_lot::{Mutex, RwLock};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify::{self, ReadFlags, Reader};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Instant;

use crate::attributes::path_of;
use crate::places::Places;
use crate::sys::errno;
use queue::Queue;
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

/// Buffer for some hundred events.
const BUFFER: usize = 16 << 10;
/// Length of the kernel's queue, if it cannot be read.
const EVENTS: usize = 16_384;

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
    /// Watches nothing yet.
    ///
    /// # Errors
    /// `EMFILE`: this user has too many instances of inotify. `ENOMEM`.
    pub(crate) fn new() -> holdfast_core::types::Result<Self> {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let flags_of_wake = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self {
            inotify: inotify::init(flags).map_err(errno)?,
            most: watches::limit("max_queued_events").unwrap_or(EVENTS),
            wake: eventfd(0, flags_of_wake).map_err(errno)?,
            queue: Mutex::default(),
            watches: RwLock::new(Watches::new()),
            above: OnceLock::new(),
            hears: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
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
    pub(crate) fn hears(&self, record: &InodeRecord, since: Instant) -> bool {
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

    /// The core has dropped an inode.
    pub(crate) fn count_let_go(&self) {
        self.watches.read().count_let_go();
    }

    /// Removes the watches of unknown directories, when enough inodes were dropped.
    pub(crate) fn sweep(&self, places: &Places) {
        if !self.watches.read().is_to_sweep() {
            return;
        }
        // Locked over both, as in `watch`.
        let mut watches = self.watches.write();
        let gone = watches.sweep(|ino| ino == Ino::ROOT || places.get(ino).is_some());
        for watch in gone {
            // The kernel may have removed it.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.watches.read().bytes()
    }

    /// Reads the available events, and perhaps some that arrive meanwhile.
    ///
    /// # Errors
    /// Those of read(2).
    fn read(&self, queue: &mut Queue) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // One more event reports an overflow.
        for _ in 0..=self.most {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let what = event.events();
            if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                queue.missed = true;
            }
            let Some(dir) = self.watches.read().dir(event.wd()) else {
                continue;
            };
            if what.contains(ReadFlags::IGNORED) {
                self.watches.write().ended(event.wd());
            }
            let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
            queue.put((dir, name.into()), what);
        }
        Ok(())
    }

    /// Wakes the thread.
    pub(super) fn wake(&self) {
        // On overflow it is awake anyway.
        let _ = rustix::io::write(&self.wake, &[1; 8]);
    }
}
