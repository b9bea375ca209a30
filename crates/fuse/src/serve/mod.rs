//! The core behind a mount: [`CoreOperations`] brings requests to a
//! [`FileSystem`], and changes made past the mount back to the
//! kernel's caches.
//!
//! Node ids are inode numbers. A name told to the kernel leaks a reference of the core, which
//! FORGET gives back. The kernel checks permissions (`default_permissions`), so callers come to
//! the core as checked.

mod again;
mod attributes;
mod backing;
mod caller;
mod callers;
mod closing;
mod content;
pub(crate) mod control;
mod flags;
mod handles;
mod kept_listings;
mod listing_ends;
mod locks;
mod names;
mod observer;
mod operations;
mod prefetch;
mod revoke;

pub use control::{Asking, CONTROL_BYTES, Control};
pub use observer::KernelCaches;

use crate::{
    Config, KeptContent, Negotiated, Notifier, Opened, Operations, Session,
    mount::MountError,
    wire::{InitFlags, OpenReply},
};
use again::Again;
use backing::Backings;
use callers::Callers;
use closing::Closing;
use handles::{Handle, Handles};
use holdfast_core::{
    FileSystem, Node, OpenFile,
    types::{Attr, Errno, Ino, Result},
};
use kept_listings::KeptListings;
use listing_ends::ListingEnds;
use parking_lot::{MappedRwLockReadGuard, RwLock};
use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering, fence},
    },
    time::Duration,
};

/// Tells, as JSON, what there is to tell about a mount, in as much detail as is asked for.
pub type InfoSource = Arc<dyn Fn(InfoDetail) -> String + Send + Sync>;

/// How much an [`InfoSource`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoDetail {
    /// What is at hand.
    Brief,
    /// Also what is counted by looking at every inode in memory.
    Inodes,
}

/// The ABI of Linux 6.2, which takes set-id bits before fallocate(2) and copy_file_range(2) as before other
/// changes of content.
const ABI_TELLS_OF_CHANGES: u32 = 38;

/// How often open files are looked at again where nothing that was seen holds for any time.
const AGAIN: Duration = Duration::from_millis(250);

/// The extended attribute of the root directory that holds what the mount's [`InfoSource`] tells.
pub const INFO_XATTR: &str = "holdfast.info";

/// The same with what is counted by looking at every inode ([`InfoDetail::Inodes`]).
pub const INODES_XATTR: &str = "holdfast.info.inodes";

/// A [`FileSystem`] as [`Operations`].
pub struct CoreOperations {
    fs: FileSystem,
    notifier: Notifier,
    handles: Arc<Handles>,
    /// Looks at open files again, if others may change them.
    again: Option<Arc<Again>>,
    backings: Backings,
    closing: Closing,
    listing_ends: ListingEnds,
    kept_listings: KeptListings,
    callers: Callers,
    /// Guards what answers for [`INFO_XATTR`] and [`INODES_XATTR`].
    info: RwLock<Option<InfoSource>>,
    /// What answers for ioctl(2).
    control: RwLock<Option<Arc<dyn Control>>>,
    /// Does what makes changes durable wait for a device?
    blocks: bool,
    /// Do regular files need no opening?
    no_open: bool,
    /// Do directories need none?
    no_opendir: bool,
    /// Does the kernel keep listings of directories?
    cache_listings: bool,
    /// What of the content of files?
    content: KeptContent,
    /// Does it keep names and attributes until it is told otherwise?
    keeps_attributes: bool,
    /// Does it keep longer what it is told of?
    is_told: bool,
    /// Does a security module ask for the labels of files?
    labels: bool,
    /// Have files extended attributes?
    xattrs: bool,
    /// Does the kernel collect writes?
    writeback: AtomicBool,
    /// Does the kernel ask again when a file is closed, because of locks?
    serves_locks: AtomicBool,
    /// Does the kernel take set-id bits itself before each change of content?
    tells_of_changes: AtomicBool,
}

impl fmt::Debug for CoreOperations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreOperations").finish_non_exhaustive()
    }
}

/// Mounts a file system of the core at `dir`, and keeps the kernel's caches true to changes
/// made through the library.
///
/// # Errors
/// [`MountError`]; nothing stays mounted.
pub fn mount(
    fs: &FileSystem,
    dir: &Path,
    config: &Config,
    info: Option<InfoSource>,
) -> Result<Session, MountError> {
    mount_with_control(fs, dir, config, info, None)
}

/// As [`mount`], with what answers for ioctl(2) on the mount's root.
///
/// # Errors
/// [`MountError`]; nothing stays mounted.
pub fn mount_with_control(
    fs: &FileSystem,
    dir: &Path,
    config: &Config,
    info: Option<InfoSource>,
    control: Option<Arc<dyn Control>>,
) -> Result<Session, MountError> {
    let notifier = Notifier::new();
    let operations = Arc::new(CoreOperations::new(fs.clone(), config, notifier.clone()));
    operations.set_info(info);
    *operations.control.write() = control;
    let session = Session::mount_with(operations.clone(), dir, config, notifier);
    if session.is_err() {
        operations.destroy();
    }
    session
}

/// What looks at open files again, where others may change them.
fn again(fs: &FileSystem, handles: &Arc<Handles>, config: &Config) -> Option<Arc<Again>> {
    let valid = config.attr_timeout;
    if !fs.is_shared() || valid == Duration::MAX {
        return None;
    }
    let every = match valid.is_zero() {
        true => AGAIN,
        false => valid / 2,
    };
    // Without the thread, what is told is seen all the same.
    Again::start(fs, handles, every).ok()
}

impl CoreOperations {
    /// Serves `fs`, and becomes its observer until the session ends. The session must be
    /// mounted with the same notifier ([`Session::mount_with`]).
    #[must_use]
    pub fn new(fs: FileSystem, config: &Config, notifier: Notifier) -> Self {
        fs.set_observer(Some(Arc::new(KernelCaches::new(notifier.clone()))));
        let handles = Arc::new(Handles::new());
        Self {
            again: again(&fs, &handles, config),
            blocks: fs.blocks(),
            callers: Callers::new(fs.is_shared()),
            backings: Backings::new(&fs, config),
            no_open: config.no_open && !fs.has_no_sizes(),
            fs,
            notifier,
            handles,
            closing: Closing::default(),
            listing_ends: ListingEnds::default(),
            kept_listings: KeptListings::default(),
            info: RwLock::default(),
            control: RwLock::default(),
            no_opendir: config.opens_no_directories(),
            cache_listings: config.cache_listings,
            content: config.content,
            keeps_attributes: [config.entry_timeout, config.attr_timeout] == [Duration::MAX; 2],
            is_told: config.heard_timeout.is_some(),
            labels: caller::uses_labels(),
            xattrs: config.xattrs,
            writeback: AtomicBool::new(false),
            serves_locks: AtomicBool::new(true),
            tells_of_changes: AtomicBool::new(false),
        }
    }

    /// Sets what answers for [`INFO_XATTR`] and [`INODES_XATTR`].
    pub fn set_info(&self, info: Option<InfoSource>) {
        *self.info.write() = info;
    }

    fn negotiated(&self, negotiated: &Negotiated) {
        let flags = negotiated.flags;
        self.tells_of_changes.store(
            negotiated.kernel_minor >= ABI_TELLS_OF_CHANGES,
            Ordering::Relaxed,
        );
        self.writeback.store(
            flags.contains(InitFlags::WRITEBACK_CACHE),
            Ordering::Relaxed,
        );
        self.serves_locks
            .store(flags.contains(InitFlags::POSIX_LOCKS), Ordering::Relaxed);
    }

    /// Attributes of a node of which the kernel gets a reference.
    fn give(&self, node: &Node) -> Attr {
        let _kept = node.clone().into_raw();
        // A change of the inode from here on is told to the kernel: see `Observer::keeps_by_number`.
        fence(Ordering::SeqCst);
        self.fs.getattr(node)
    }

    fn handle(&self, fh: u64) -> Result<MappedRwLockReadGuard<'_, Handle>> {
        self.handles.get(fh)
    }

    /// Runs `act` with the open file, or with one opened for the occasion where the kernel has
    /// not opened any.
    fn with_file<T>(
        &self,
        ino: Ino,
        fh: u64,
        act: impl FnOnce(&OpenFile) -> Result<T>,
    ) -> Result<T> {
        if fh != 0 {
            return act(&self.handle(fh)?.file);
        }
        if !self.no_open && !self.no_opendir {
            return Err(Errno::EBADF);
        }
        act(&self.open_for_once(ino)?)
    }

    /// Keeps a regular file that was opened, with these flags: the reply to OPEN.
    fn opened(&self, file: OpenFile, raw: i32) -> Result<Opened> {
        let fh = self.handles.insert(file)?;
        if let Some(again) = &self.again {
            again.opened();
        }
        let handle = self.handle(fh)?;
        let backing = self.backings.opened(&self.fs, &handle.file);
        let flags = self.open_reply(&handle.file, raw, backing.is_some());
        Ok(Opened { fh, flags, backing })
    }

    /// What replies to OPEN ask of the kernel.
    fn open_reply(&self, file: &OpenFile, raw: i32, passed: bool) -> OpenReply {
        let mut flags = OpenReply::PARALLEL_DIRECT_WRITES;
        // The kernel reads what it keeps as far as the file's size tells.
        let has_no_size = !file.flags().writable() && self.fs.has_no_size(file.node());
        let kept = self.content != KeptContent::Mapped && !has_no_size;
        flags.set(OpenReply::PASSTHROUGH, passed);
        // If the access time is due, the kernel drops its pages, so that the first read is a request.
        let is_unseen = !self.fs.is_access_time_due(file);
        // The notification that drops pages from before a missed change may be under way still.
        let again = self.again.as_ref();
        let is_old = again.is_some_and(|again| again.has_missed(file.node().ino()));
        let keeps = kept && !passed && is_unseen && !is_old;
        flags.set(OpenReply::KEEP_CACHE, keeps);
        // The kernel sends an append through its page cache page by page: others could append in
        // between. Direct I/O sends it in one piece.
        let appends = raw & libc::O_APPEND != 0 && self.fs.sees_bypass();
        flags.set(OpenReply::DIRECT_IO, (!kept || appends) && !passed);
        // FLUSH gives record locks back, and tells of what was written and is lost.
        let tells = self.blocks && file.flags().writable();
        flags.set(
            OpenReply::NOFLUSH,
            !tells && !self.serves_locks.load(Ordering::Relaxed),
        );
        flags
    }

    fn is_writeback(&self) -> bool {
        self.writeback.load(Ordering::Relaxed)
    }
}
