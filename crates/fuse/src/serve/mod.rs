//! The core behind a mount. [`CoreOperations`] serves requests from a [`FileSystem`], and passes
//! changes made past the mount on to the kernel's caches.
//!
//! Node ids are inode numbers. Each entry sent to the kernel leaks one reference of the core, which
//! FORGET gives back. The kernel checks permissions (`default_permissions`), so callers of the core
//! have `checked == true`.

mod administration;
mod attributes;
mod backing;
mod caller;
mod callers;
mod closing;
mod content;
mod control;
mod flags;
mod handles;
mod kept_listings;
mod listing_bounds;
mod locks;
mod names;
mod observer;
mod operations;
mod prefetch;
mod revalidator;

pub use crate::wire::control::CONTROL_BYTES;
pub use control::{Asking, Control};
pub use observer::KernelCaches;

use crate::{
    Config, KeptContent, Negotiated, Notifier, Opened, Operations, Session,
    mount::MountError,
    wire::{InitFlags, OpenReply},
};
use backing::Backings;
use callers::Callers;
use closing::Closing;
use handles::{Handle, Handles};
use holdfast_core::{
    FileSystem, Node, OpenFile,
    types::{Attr, Errno, Ino, OpenFlags, Result},
};
use kept_listings::KeptListings;
use listing_bounds::ListingBounds;
use parking_lot::RwLock;
use revalidator::Revalidator;
use std::{
    fmt,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{Ordering, fence},
    },
    time::Duration,
};

/// Information on a mount as JSON, in the given detail.
pub type InfoSource = Arc<dyn Fn(InfoDetail) -> String + Send + Sync>;

/// How much an [`InfoSource`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoDetail {
    /// What is known without a scan.
    Brief,
    /// Also counts that need a scan of all inodes in memory.
    Inodes,
}

/// The ABI of Linux 6.2. From then on the kernel clears set-id bits before fallocate(2) and
/// copy_file_range(2), as before other changes of content.
const ABI_TELLS_OF_CHANGES: u32 = 38;

/// How often open files are revalidated where attributes have no validity.
const REVALIDATE_EVERY: Duration = Duration::from_millis(250);

/// The extended attribute of the root directory with the mount's [`InfoDetail::Brief`] information.
pub const INFO_XATTR: &str = "holdfast.info";

/// The same for [`InfoDetail::Inodes`].
pub const INODES_XATTR: &str = "holdfast.info.inodes";

/// A [`FileSystem`] as [`Operations`].
pub struct CoreOperations {
    fs: FileSystem,
    notifier: Notifier,
    handles: Arc<Handles>,
    /// Revalidates open files, if others may change them.
    revalidator: Option<Arc<Revalidator>>,
    backings: Backings,
    closing: Closing,
    listing_bounds: ListingBounds,
    kept_listings: KeptListings,
    callers: Callers,
    /// Guards the source of [`INFO_XATTR`] and [`INODES_XATTR`].
    info: RwLock<Option<InfoSource>>,
    /// Answers ioctl(2).
    control: RwLock<Option<Arc<dyn Control>>>,
    /// Do syncs wait for a device?
    blocks: bool,
    /// Does a security module ask for the labels of files?
    labels: bool,
    /// `no_open` only if sizes are known.
    config: Config,
    /// Set by INIT.
    negotiated: OnceLock<Negotiated>,
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

/// As [`mount`], with a [`Control`] for ioctl(2) on the mount's root.
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
    *operations.info.write() = info;
    *operations.control.write() = control;
    let session = Session::mount_with(operations.clone(), dir, config, notifier);
    if session.is_err() {
        operations.destroy();
    }
    session
}

/// Starts the revalidation of open files, where others may change them.
fn revalidator(
    fs: &FileSystem,
    handles: &Arc<Handles>,
    config: &Config,
) -> Option<Arc<Revalidator>> {
    let valid = config.attr_timeout;
    if !fs.is_shared() || valid == Duration::MAX {
        return None;
    }
    let every = match valid.is_zero() {
        true => REVALIDATE_EVERY,
        false => valid / 2,
    };
    // Without the thread, only notified changes are seen.
    Revalidator::start(fs, handles, every).ok()
}

impl CoreOperations {
    /// Serves `fs`, and becomes its observer until the session ends. The session must be
    /// mounted with the same notifier ([`Session::mount_with`]).
    #[must_use]
    pub fn new(fs: FileSystem, config: &Config, notifier: Notifier) -> Self {
        fs.set_observer(Some(Arc::new(KernelCaches::new(notifier.clone()))));
        let handles = Arc::new(Handles::new());
        Self {
            revalidator: revalidator(&fs, &handles, config),
            blocks: fs.blocks(),
            callers: Callers::new(fs.is_shared()),
            backings: Backings::new(&fs, config),
            config: Config {
                no_open: config.no_open && !fs.has_no_sizes(),
                ..config.clone()
            },
            fs,
            notifier,
            handles,
            closing: Closing::default(),
            listing_bounds: ListingBounds::default(),
            kept_listings: KeptListings::default(),
            info: RwLock::default(),
            control: RwLock::default(),
            labels: caller::uses_labels(),
            negotiated: OnceLock::new(),
        }
    }

    /// Is this in force?
    fn has(&self, flag: InitFlags) -> bool {
        let negotiated = self.negotiated.get();
        negotiated.is_some_and(|negotiated| negotiated.flags.contains(flag))
    }

    /// Attributes of a node, with a reference for the kernel.
    fn give(&self, node: &Node) -> Attr {
        let _kept = node.clone().into_raw();
        // A change of the inode from here on is notified: see `Observer::keeps_by_number`.
        fence(Ordering::SeqCst);
        self.fs.getattr(node)
    }

    /// A request that is not answered yet changed the listing of this directory, or made its access
    /// time due.
    fn names_changed(&self, dir: Ino) {
        if self.config.cache_listings {
            self.kept_listings.changed(&self.notifier, dir);
        }
    }
    fn handle(&self, fh: u64) -> Result<Arc<Handle>> {
        self.handles.get(fh)
    }

    /// Runs `act` with the open file, or with a temporary one where the kernel sent no OPEN.
    fn with_file<T>(
        &self,
        ino: Ino,
        fh: u64,
        act: impl FnOnce(&OpenFile) -> Result<T>,
    ) -> Result<T> {
        if fh != 0 {
            return act(&self.handle(fh)?.file);
        }
        if !self.config.no_open && !self.config.opens_no_directories() {
            return Err(Errno::EBADF);
        }
        act(&self.open_for_once(ino)?)
    }

    /// Opens the inode for one operation, where the kernel sends no OPEN.
    fn open_for_once(&self, ino: Ino) -> Result<OpenFile> {
        let node = self.fs.node(ino)?;
        let writable = !node.kind().is_dir() && !self.fs.options().read_only;
        let mut flags = OpenFlags::empty();
        flags.set(OpenFlags::READ_WRITE, writable);
        self.fs.open_unseen(node, flags)
    }

    /// Stores an open regular file; the reply to OPEN with these flags.
    fn opened(&self, file: OpenFile, raw: i32) -> Result<Opened> {
        let fh = self.handles.insert(file);
        if let Some(revalidator) = &self.revalidator {
            revalidator.opened();
        }
        let handle = self.handle(fh)?;
        let backing = self.backings.opened(&self.fs, &handle.file);
        let flags = self.open_reply(&handle.file, raw, backing.is_some());
        Ok(Opened { fh, flags, backing })
    }

    /// What replies to OPEN ask of the kernel.
    fn open_reply(&self, file: &OpenFile, raw: i32, passed: bool) -> OpenReply {
        let mut flags = OpenReply::PARALLEL_DIRECT_WRITES;
        // The kernel reads its page cache only up to the file's size.
        let has_no_size = !file.flags().writable() && self.fs.has_no_size(file.node());
        let kept = self.config.content != KeptContent::Mapped && !has_no_size;
        flags.set(OpenReply::PASSTHROUGH, passed);
        // If an access time update is due, the kernel drops its pages so that the first read is a
        // request.
        let is_unseen = !self.fs.is_access_time_due(file);
        // The notification that drops the pages of before a missed change may still be queued.
        let revalidator = self.revalidator.as_ref();
        let is_old =
            revalidator.is_some_and(|revalidator| revalidator.has_missed(file.node().ino()));
        let keeps = kept && !passed && is_unseen && !is_old;
        flags.set(OpenReply::KEEP_CACHE, keeps);
        // The kernel sends an append through its page cache page by page: others could append in
        // between. Direct I/O sends it in one piece.
        let appends = raw & libc::O_APPEND != 0 && self.fs.sees_bypass();
        flags.set(OpenReply::DIRECT_IO, (!kept || appends) && !passed);
        // FLUSH releases record locks, and reports failed writeback.
        let tells = self.blocks && file.flags().writable();
        flags.set(
            OpenReply::NOFLUSH,
            !tells && !self.has(InitFlags::POSIX_LOCKS),
        );
        flags
    }
}
