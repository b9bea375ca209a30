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

/// What the kernel keeps of the content of files, and when it drops that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptContent {
    /// What was read, until it is told that it changed.
    #[default]
    Told,
    /// What was read, until new attributes show that it changed: for a file system that others change, where nothing tells the kernel. It
    /// asks for attributes that are no longer believed before it reads.
    ByAttributes,
    /// Only what is mapped, and that as before. Each read(2) is a request, and none ends at a length that the kernel has in memory. Files have to
    /// be opened by the file system ([`no_open`](Config::no_open) is false).
    Mapped,
}

/// Which regular files the kernel reads and writes on the host by itself (FUSE passthrough), where it can and the file system is
/// a directory of the host. It keeps nothing of their content then, and neither does this side. They have to be opened by the
/// file system ([`no_open`](Config::no_open) is false).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passthrough {
    /// None.
    #[default]
    Off,
    /// Those that are large when they are opened; where the kernel keeps no content ([`KeptContent::Mapped`]) all.
    Auto,
    /// All.
    All,
}

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which way requests come.
    pub transport: TransportChoice,
    /// Threads that read `/dev/fuse` when it carries all requests; 0: one per processor. Over io_uring
    /// each processor has two. Further ones are added while some wait.
    pub threads: usize,
    /// Threads of one processor's queue (or of `/dev/fuse`), at most, apart from those that wait for
    /// locks: as many requests of it can wait for a device at a time.
    pub threads_max: usize,
    /// Lock requests, at most, that wait at a time; more are refused with `ENOLCK`.
    pub lock_waiters: usize,
    /// Largest write in bytes: 4 KiB to 1 MiB, a multiple of the page size.
    pub max_write: u32,
    /// How long the kernel may believe a name.
    pub entry_timeout: Duration,
    /// How long the kernel may believe attributes.
    pub attr_timeout: Duration,
    /// How long the kernel may believe that a name does not exist; zero: it asks every time.
    pub negative_timeout: Duration,
    /// How long it may believe names, absence and attributes of which it is told when they change
    /// ([`Operations::is_heard`](crate::Operations::is_heard)), if it can be told that all may have changed (Linux 6.16). `None`: as long as others.
    pub heard_timeout: Option<Duration>,
    /// `st_blksize` of all files, in bytes.
    pub block_size: u32,
    /// The kernel collects writes.
    pub writeback: bool,
    /// Inodes may be looked up by number alone: file handles (`name_to_handle_at`), and with them export by NFS.
    pub export: bool,
    /// How directories are listed.
    pub listing: ListingChoice,
    /// Record and flock(2) locks are served by the file system; else by the kernel, for this
    /// mount only, which saves a request at every close.
    pub serve_locks: bool,
    /// Regular files are opened, made and closed without OPEN, CREATE, FLUSH and RELEASE, where the file
    /// system answers `ENOSYS`. Locks are the kernel's then, whatever `serve_locks` says.
    pub no_open: bool,
    /// Directories are opened and closed without a request, where the file system answers `ENOSYS`. The kernel keeps
    /// their listings then, so that it counts with `cache_listings` only.
    pub no_opendir: bool,
    /// The kernel keeps listings of directories, and asks for one again when its names changed.
    pub cache_listings: bool,
    /// What the kernel keeps of the content of files.
    pub content: KeptContent,
    /// Which files the kernel reads and writes by itself. Not together with `writeback`.
    pub passthrough: Passthrough,
    /// POSIX ACLs.
    pub posix_acl: bool,
    /// Extended attributes, where the file system answers `ENOSYS` without: then the kernel asks for none, nor for ACLs.
    pub xattrs: bool,
    /// Identity-mapped mounts of this mount may be made.
    pub idmap: bool,
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
            heard_timeout: None,
            block_size: 4096,
            writeback: false,
            export: true,
            listing: ListingChoice::Plus,
            serve_locks: true,
            no_open: false,
            no_opendir: true,
            cache_listings: true,
            content: KeptContent::Told,
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

    /// Are there files that the kernel reads and writes by itself, if it can?
    pub(crate) fn passes_through(&self) -> bool {
        self.passthrough != Passthrough::Off && !self.no_open && !self.writeback
    }

    /// `max_write` within what the protocol allows.
    pub(crate) fn max_write(&self) -> u32 {
        let pages = (self.max_write / 4096).clamp(1, 256);
        pages * 4096
    }
}
