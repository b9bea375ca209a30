//! The directory of the host, and how inodes below it are reached ([`reach`]).
//!
//! The root stays open. A directory below is reached from the nearest open one, name by name, and a
//! file by its name in its directory. An inode that is open above is reached by its
//! [held](crate::held) descriptor. One that others have moved is reached by a cached descriptor, or
//! by its handle. A walk never leads through a symbolic link, upwards, or onto another mount, and
//! compares the identity of what it finds.

use holdfast_core::types::{Errno, Ino, Result};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, openat, statx};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::acting::Own;
use crate::descriptors::Descriptors;
use crate::fs_type::FsType;
use crate::held::Held;
use crate::identity::Identity;
use crate::numbers::Numbers;
use crate::one_name::open_to_list;
use crate::places::Places;
use crate::sys::{Handle, errno};
use crate::watcher::Watcher;

pub(crate) mod lookup;
pub(crate) mod reach;

/// Cached directories for each cached file.
const DIRECTORIES_A_FILE: usize = 4;

/// With a smaller limit of open files fewer are cached.
const DESCRIPTORS: u64 = 4096;

/// Delay until an unused file without names is closed and its space freed, if no operation does so
/// first.
const SOON: Duration = Duration::from_millis(50);
/// Stack of the closing thread.
const CLOSER_STACK: usize = 64 << 10;
/// After an inode was found to be gone, lookups are held for this long; and each looked up inode
/// for at least as long.
const HOLDING: Duration = Duration::from_secs(1);

pub(crate) struct Host {
    root: OwnedFd,
    root_is: Identity,
    pub(crate) of: FsType,
    /// The mount of the root, if the kernel reports it.
    mount: Option<u64>,
    /// Does it have extended attributes? `true` until it reports otherwise.
    has_xattrs: AtomicBool,
    pub(crate) numbers: Numbers,
    pub(crate) places: Places,
    directories: Descriptors,
    files: Descriptors,
    pub(crate) held: Held,
    /// Credentials of this process.
    pub(crate) own: Own,
    /// Is a thread about to close dropped inodes?
    closes: AtomicBool,
    /// Is one about to close looked up inodes?
    closes_looked_up: AtomicBool,
    /// When an inode was last found to be gone.
    gone: Mutex<Option<Instant>>,
    /// The root, if inodes of its mount can be opened by handle.
    handles: Option<OwnedFd>,
    /// Notifications of changes by others.
    pub(crate) watcher: Option<Watcher>,
}

impl Host {
    /// `hears`: watch for changes by others, if possible.
    ///
    /// # Errors
    /// Those of open(2); `ENOTDIR`.
    pub(crate) fn open(path: &Path, directories: usize, hears: bool) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(errno)?;
        let of = FsType::of(root.as_fd());
        let stat = stat_of(root.as_fd(), of)?;
        let root_is = Identity::of(&stat);
        let all = descriptors();
        let share = if all < DESCRIPTORS { 8 } else { 1 };
        let directories = directories / share;
        let files = directories / DIRECTORIES_A_FILE;
        Ok(Self {
            root_is,
            of,
            mount: mount(&stat),
            has_xattrs: AtomicBool::new(true),
            numbers: Numbers::new(root_is.host),
            places: Places::default(),
            directories: Descriptors::at_most(directories),
            files: Descriptors::at_most(files),
            held: Held::new(all, directories + files),
            own: Own::here()?,
            closes: AtomicBool::new(false),
            closes_looked_up: AtomicBool::new(false),
            gone: Mutex::default(),
            handles: opens_handles(root.as_fd()),
            // Without it answers are valid for a shorter time.
            watcher: (hears && of.is_local())
                .then(|| Watcher::new().ok())
                .flatten(),
            root,
        })
    }

    /// The root's descriptor.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// statx(2) of an open inode.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn stat(&self, file: BorrowedFd<'_>) -> Result<Statx> {
        stat_of(file, self.of)
    }

    /// May the content of a file of this size have another length?
    pub(crate) fn has_no_size(&self, size: u64) -> bool {
        !self.of.tells_sizes().unwrap_or(size > 0)
    }

    /// An inode was found to be gone: others remove or replace names. So lookups are held for a
    /// while, until they are used.
    pub(crate) fn has_gone(&self) -> Errno {
        *self.gone.lock() = Some(Instant::now());
        Errno::ESTALE
    }

    /// Are looked up inodes held?
    pub(crate) fn holds_looked_up(&self) -> bool {
        let gone = *self.gone.lock();
        gone.is_some_and(|gone| gone.elapsed() < HOLDING)
    }

    /// Closes descriptors of dropped inodes.
    pub(crate) fn tidy(&self) {
        self.files.tidy();
        self.directories.tidy();
        self.held.tidy();
        if let Some(watcher) = &self.watcher {
            watcher.sweep(&self.places);
        }
    }

    /// The core has dropped an inode. Does not wait.
    pub(crate) fn forget(self: &Arc<Self>, ino: Ino) {
        self.places.forget(ino);
        if let Some(watcher) = &self.watcher {
            watcher.count_let_go();
        }
        self.files.retire(ino);
        self.directories.retire(ino);
        if self.held.forget(ino) {
            self.close_soon(&self.closes, SOON, |host| {
                host.closes.store(false, Relaxed);
                host.tidy();
            });
        }
    }

    /// Schedules the close of looked up inodes that were not used for a while.
    fn close_looked_up(self: &Arc<Self>) {
        self.close_soon(&self.closes_looked_up, HOLDING, |host| {
            host.closes_looked_up.store(false, Relaxed);
            if host.held.looked_up.drop_unused() {
                host.close_looked_up();
            }
        });
    }

    /// Starts a thread that calls `close` after a while, unless `flag` says that there is one.
    fn close_soon(
        self: &Arc<Self>,
        flag: &AtomicBool,
        after: Duration,
        close: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        // Relaxed: the flag guards no data. What is to be closed after it was cleared sets it
        // again.
        if flag.swap(true, Relaxed) {
            return;
        }
        let host = Arc::clone(self);
        let closer = std::thread::Builder::new().name("holdfast-close".into());
        let started = closer.stack_size(CLOSER_STACK).spawn(move || {
            std::thread::sleep(after);
            close(&host);
        });
        if started.is_err() {
            // A later operation closes the descriptors.
            flag.store(false, Relaxed);
        }
    }
}

/// The root, for opening by handle. `None`: not permitted, or the file system has no handles.
fn opens_handles(root: BorrowedFd<'_>) -> Option<OwnedFd> {
    let on = open_to_list(root, OFlags::empty()).ok()?;
    let handle = Handle::of(root)?;
    handle.open(on.as_fd()).is_ok().then_some(on)
}

fn stat_of(file: BorrowedFd<'_>, of: FsType) -> Result<Statx> {
    statx(file, "", AtFlags::EMPTY_PATH, of.asked()).map_err(errno)
}

fn mount(stat: &Statx) -> Option<u64> {
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

/// The limit of open descriptors, after it was raised as far as possible.
fn descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}
