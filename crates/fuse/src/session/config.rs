//! What an embedder can choose.

use crate::mount::MountOptions;
use std::time::Duration;

/// Which way requests come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// io_uring where the kernel offers it, else `/dev/fuse`.
    #[default]
    Auto,
    /// io_uring, or no mount.
    Uring,
    /// `/dev/fuse`.
    Dev,
}

/// How directories are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListingChoice {
    /// Always with attributes.
    #[default]
    Plus,
    /// As the kernel guesses from what callers do.
    Auto,
    /// Never with attributes.
    Plain,
}

/// What the kernel caches of the content of files, and when it drops that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptContent {
    /// What was read, until it is notified of a change.
    #[default]
    Notified,
    /// What was read, until new attributes show a change: for a file system that others change
    /// without a notification. Before a read the kernel asks for attributes that are no longer
    /// valid.
    ByAttributes,
    /// Only mapped pages, as with [`KeptContent::Notified`]. Each read(2) is a request, and is not
    /// limited to the size that the kernel has in memory. Files must be opened by the file system
    /// ([`no_open`](Config::no_open) is false).
    Mapped,
}

/// Which regular files the kernel reads and writes on the host itself (FUSE passthrough), if it can
/// and the file system is a directory of the host. Their content is cached neither there nor here.
/// They must be opened by the file system ([`no_open`](Config::no_open) is false).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passthrough {
    /// None.
    #[default]
    Off,
    /// Those that are large when opened; all, if the kernel caches no content
    /// ([`KeptContent::Mapped`]).
    Auto,
    /// All.
    All,
}

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which way requests come.
    pub transport: TransportChoice,
    /// Threads that read `/dev/fuse` when it carries all requests; 0: one per processor. With
    /// io_uring each processor has two. More are added while some wait.
    pub threads: usize,
    /// Most threads of one processor's queue (or of `/dev/fuse`), without those that wait for
    /// locks: as many of its requests can wait for a device at once.
    pub threads_max: usize,
    /// Most lock requests that wait at once; more are refused with `ENOLCK`.
    pub lock_waiters: usize,
    /// Largest write in bytes: 4 KiB to 1 MiB, a multiple of the page size.
    pub max_write: u32,
    /// How long the kernel may cache a name.
    pub entry_timeout: Duration,
    /// How long the kernel may cache attributes.
    pub attr_timeout: Duration,
    /// How long the kernel may cache that a name does not exist; zero: not at all.
    pub negative_timeout: Duration,
    /// The same for names, absence and attributes that the kernel is notified of
    /// ([`Operations::notified_for`](crate::Operations::notified_for)), if all can be invalidated
    /// at once (Linux 6.16). `None`: as others.
    pub notified_timeout: Option<Duration>,
    /// `st_blksize` of all files, in bytes.
    pub block_size: u32,
    /// The kernel collects writes.
    pub writeback: bool,
    /// Inodes may be looked up by number: file handles (`name_to_handle_at`), and NFS export.
    pub export: bool,
    /// How directories are listed.
    pub listing: ListingChoice,
    /// Record and flock(2) locks are served by the file system; else by the kernel, for this
    /// mount only, which saves a request at every close.
    pub serve_locks: bool,
    /// Regular files are opened, created and closed without OPEN, CREATE, FLUSH and RELEASE, if the
    /// file system answers `ENOSYS`. Locks are then the kernel's, regardless of `serve_locks`.
    pub no_open: bool,
    /// Directories are opened and closed without a request, if the file system answers `ENOSYS`.
    /// The kernel then caches their listings, so this needs `cache_listings`.
    pub no_opendir: bool,
    /// The kernel caches listings of directories until their names change.
    pub cache_listings: bool,
    /// The kernel caches the targets of symbolic links.
    pub cache_links: bool,
    /// What the kernel caches of the content of files.
    pub content: KeptContent,
    /// Which files the kernel reads and writes itself. Excludes `writeback`.
    pub passthrough: Passthrough,
    /// POSIX ACLs.
    pub posix_acl: bool,
    /// Extended attributes. Without them the file system answers `ENOSYS`, and the kernel asks for
    /// none, nor for ACLs.
    pub xattrs: bool,
    /// Identity-mapped mounts of this mount may be made.
    pub idmap: bool,
    /// A signal that ends a program ends its waits for the file system.
    pub interruptible: bool,
    /// How it is mounted.
    pub mount: MountOptions,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            transport: TransportChoice::Auto,
            threads: 0,
            threads_max: 128,
            lock_waiters: 1024,
            max_write: 1 << 20,
            entry_timeout: Duration::MAX,
            attr_timeout: Duration::MAX,
            negative_timeout: Duration::MAX,
            notified_timeout: None,
            block_size: 4096,
            writeback: false,
            export: true,
            listing: ListingChoice::Plus,
            serve_locks: true,
            interruptible: false,
            no_open: false,
            no_opendir: true,
            cache_listings: true,
            cache_links: true,
            content: KeptContent::Notified,
            passthrough: Passthrough::Off,
            posix_acl: true,
            xattrs: true,
            idmap: true,
            mount: MountOptions::default(),
        }
    }
}

impl Config {
    /// Are directories opened without a request?
    pub(crate) fn opens_no_directories(&self) -> bool {
        self.no_opendir && self.cache_listings
    }

    /// May the kernel read and write files itself?
    pub(crate) fn passes_through(&self) -> bool {
        self.passthrough != Passthrough::Off && !self.no_open && !self.writeback
    }

    /// `max_write` within what the protocol allows.
    pub(crate) fn max_write(&self) -> u32 {
        let pages = (self.max_write / 4096).clamp(1, 256);
        pages * 4096
    }
}
