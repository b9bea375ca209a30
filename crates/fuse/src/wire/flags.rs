//! Flags of the protocol.

use bitflags::bitflags;

bitflags! {
    /// What the two sides agree on at INIT (64 bits since `INIT_EXT`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct InitFlags: u64 {
        /// Reads may run in parallel.
        const ASYNC_READ = 1;
        /// POSIX record locks are served here.
        const POSIX_LOCKS = 1 << 1;
        /// Truncation at open is served here.
        const ATOMIC_O_TRUNC = 1 << 3;
        /// Lookups of `.` and `..` by number are served (NFS export).
        const EXPORT_SUPPORT = 1 << 4;
        /// Writes larger than a page.
        const BIG_WRITES = 1 << 5;
        /// The umask is applied here, not by the kernel.
        const DONT_MASK = 1 << 6;
        /// flock(2) locks are served here.
        const FLOCK_LOCKS = 1 << 10;
        /// The kernel drops cached data by itself when the modification time changes.
        const AUTO_INVAL_DATA = 1 << 12;
        /// Directory entries with their attributes.
        const DO_READDIRPLUS = 1 << 13;
        /// The kernel chooses between both kinds of listing.
        const READDIRPLUS_AUTO = 1 << 14;
        /// Asynchronous direct I/O.
        const ASYNC_DIO = 1 << 15;
        /// Writes are cached by the kernel and come later.
        const WRITEBACK_CACHE = 1 << 16;
        /// `ENOSYS` to OPEN means: never ask again.
        const NO_OPEN_SUPPORT = 1 << 17;
        /// Lookups and listings of one directory in parallel.
        const PARALLEL_DIROPS = 1 << 18;
        /// Set-id bits are cleared here (first version).
        const HANDLE_KILLPRIV = 1 << 19;
        /// POSIX ACLs.
        const POSIX_ACL = 1 << 20;
        /// Reading the device after an abort says `ECONNABORTED`.
        const ABORT_ERROR = 1 << 21;
        /// The reply's `max_pages` counts.
        const MAX_PAGES = 1 << 22;
        /// Targets of symbolic links are cached.
        const CACHE_SYMLINKS = 1 << 23;
        /// `ENOSYS` to OPENDIR means: never ask again.
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// Cached data is dropped only when this side says so.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// Set-id bits are cleared here, as requests tell.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// The longer form of SETXATTR.
        const SETXATTR_EXT = 1 << 29;
        /// The upper 32 flags count.
        const INIT_EXT = 1 << 30;
        /// Creations carry a security context.
        const SECURITY_CTX = 1 << 32;
        /// Creations carry the supplementary group that matters.
        const CREATE_SUPP_GROUP = 1 << 34;
        /// Entries can be expired instead of dropped.
        const HAS_EXPIRE_ONLY = 1 << 35;
        /// Shared mappings of files opened for direct I/O.
        const DIRECT_IO_ALLOW_MMAP = 1 << 36;
        /// Reads and writes go to another file.
        const PASSTHROUGH = 1 << 37;
        /// No lookups by number: handles of exports are refused.
        const NO_EXPORT_SUPPORT = 1 << 38;
        /// Requests can be sent again.
        const HAS_RESEND = 1 << 39;
        /// Identity-mapped mounts.
        const ALLOW_IDMAP = 1 << 40;
        /// Requests over io_uring.
        const OVER_IO_URING = 1 << 41;
        /// Requests time out.
        const REQUEST_TIMEOUT = 1 << 42;
    }

    /// What the reply to OPEN, OPENDIR and CREATE asks of the kernel for this open file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OpenReply: u32 {
        /// Bypass the page cache.
        const DIRECT_IO = 1;
        /// Keep what is cached of this file.
        const KEEP_CACHE = 1 << 1;
        /// The file has no position.
        const NONSEEKABLE = 1 << 2;
        /// Cache the listing of this directory.
        const CACHE_DIR = 1 << 3;
        /// The file is a stream.
        const STREAM = 1 << 4;
        /// Send no FLUSH when a descriptor is closed.
        const NOFLUSH = 1 << 5;
        /// Direct writes to one file in parallel.
        const PARALLEL_DIRECT_WRITES = 1 << 6;
        /// Read and write the file that was registered (`backing_id`).
        const PASSTHROUGH = 1 << 7;
    }
}

/// Bits of single requests.
pub(crate) mod bit {
    pub(crate) const FATTR_MODE: u32 = 1;
    pub(crate) const FATTR_UID: u32 = 1 << 1;
    pub(crate) const FATTR_GID: u32 = 1 << 2;
    pub(crate) const FATTR_SIZE: u32 = 1 << 3;
    pub(crate) const FATTR_ATIME: u32 = 1 << 4;
    pub(crate) const FATTR_MTIME: u32 = 1 << 5;
    pub(crate) const FATTR_FH: u32 = 1 << 6;
    pub(crate) const FATTR_ATIME_NOW: u32 = 1 << 7;
    pub(crate) const FATTR_MTIME_NOW: u32 = 1 << 8;
    pub(crate) const FATTR_CTIME: u32 = 1 << 10;
    pub(crate) const FATTR_KILL_SUIDGID: u32 = 1 << 11;

    pub(crate) const OPEN_KILL_SUIDGID: u32 = 1;
    pub(crate) const WRITE_CACHE: u32 = 1;
    pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;
    pub(crate) const RELEASE_FLOCK_UNLOCK: u32 = 1 << 1;
    pub(crate) const FSYNC_FDATASYNC: u32 = 1;
    pub(crate) const LK_FLOCK: u32 = 1;
    pub(crate) const SETXATTR_ACL_KILL_SGID: u32 = 1;

    /// Extension: groups. Smaller numbers are counts of security contexts.
    pub(crate) const EXT_GROUPS: u32 = 32;

    pub(crate) const NOTIFY_INVAL_INODE: i32 = 2;
    pub(crate) const NOTIFY_INVAL_ENTRY: i32 = 3;
    pub(crate) const NOTIFY_INC_EPOCH: i32 = 8;
    pub(crate) const NOTIFY_PRUNE: i32 = 9;

    pub(crate) const RING_REGISTER: u32 = 1;
    pub(crate) const RING_COMMIT_AND_FETCH: u32 = 2;
}
