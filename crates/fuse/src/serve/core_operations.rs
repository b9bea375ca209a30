//! The state behind a mount, which the requests of all files here share.

use super::{
    Control, InfoSource, KernelCaches, backing::Backings, caller::uses_labels, callers::Callers,
    closing::Closing, handles::Handles, kept_listings::KeptListings, listing_bounds::ListingBounds,
    revalidator::Revalidator,
};
use crate::{Config, Negotiated, Notifier, wire::InitFlags};
use holdfast_core::{
    FileSystem, Node, OpenFile,
    types::{Attr, Errno, Ino, OpenFlags, Result},
};
use parking_lot::RwLock;
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{Ordering, fence},
    },
};

/// A [`FileSystem`] as [`Operations`](crate::Operations).
pub struct CoreOperations {
    pub(super) fs: FileSystem,
    pub(super) notifier: Notifier,
    pub(super) handles: Arc<Handles>,
    /// Revalidates open files, if others may change them.
    pub(super) revalidator: Option<Arc<Revalidator>>,
    pub(super) backings: Backings,
    pub(super) closing: Closing,
    pub(super) listing_bounds: ListingBounds,
    pub(super) kept_listings: KeptListings,
    pub(super) callers: Callers,
    /// Guards the source of the attributes with [information](super::info).
    pub(super) info: RwLock<Option<InfoSource>>,
    /// Guards what answers ioctl(2).
    pub(super) control: RwLock<Option<Arc<dyn Control>>>,
    /// Do syncs wait for a device?
    pub(super) blocks: bool,
    /// Does a security module ask for the labels of files?
    pub(super) labels: bool,
    /// `no_open` only if sizes are known.
    pub(super) config: Config,
    /// Set by INIT.
    pub(super) negotiated: OnceLock<Negotiated>,
}

impl fmt::Debug for CoreOperations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreOperations").finish_non_exhaustive()
    }
}

impl CoreOperations {
    /// Serves `fs`, and becomes its observer until the session ends. The session must be
    /// mounted with the same notifier ([`mount_with`](crate::Session::mount_with)).
    #[must_use]
    pub fn new(fs: FileSystem, config: &Config, notifier: Notifier) -> Self {
        fs.set_observer(Some(Arc::new(KernelCaches::new(notifier.clone()))));
        let handles = Arc::new(Handles::new());
        Self {
            revalidator: Revalidator::start(&fs, &handles, config),
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
            labels: uses_labels(),
            negotiated: OnceLock::new(),
        }
    }

    /// Is this in force?
    pub(super) fn has(&self, flag: InitFlags) -> bool {
        let negotiated = self.negotiated.get();
        negotiated.is_some_and(|negotiated| negotiated.flags.contains(flag))
    }

    /// Attributes of a node, with a reference for the kernel.
    pub(super) fn give(&self, node: &Node) -> Attr {
        let _kept = node.clone().into_raw();
        // A change of the inode from here on is notified: see `Observer::keeps_by_number`.
        fence(Ordering::SeqCst);
        self.fs.getattr(node)
    }

    /// A request that is not answered yet changed the listing of this directory, or made its access
    /// time due.
    pub(super) fn names_changed(&self, dir: Ino) {
        if self.config.cache_listings {
            self.kept_listings.changed(&self.notifier, dir);
        }
    }

    /// Runs `act` with the open file, or with a temporary one where the kernel sent no OPEN.
    pub(super) fn with_file<T>(
        &self,
        ino: Ino,
        fh: u64,
        act: impl FnOnce(&OpenFile) -> Result<T>,
    ) -> Result<T> {
        if fh != 0 {
            return act(&self.handles.get(fh)?.file);
        }
        if !self.config.no_open && !self.config.opens_no_directories() {
            return Err(Errno::EBADF);
        }
        act(&self.open_for_once(ino)?)
    }

    /// Opens the inode for one operation, where the kernel sends no OPEN.
    pub(super) fn open_for_once(&self, ino: Ino) -> Result<OpenFile> {
        let node = self.fs.node(ino)?;
        let writable = !node.kind().is_dir() && !self.fs.options().read_only;
        let mut flags = OpenFlags::empty();
        flags.set(OpenFlags::READ_WRITE, writable);
        self.fs.open_unseen(node, flags)
    }
}
