//! Requests as values, decoded from untrusted bytes.

use super::{Extensions, InitFlags};
use holdfast_types::{Ino, SetAttr};

/// The header of every request.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The operation's number, perhaps unknown here.
    pub opcode: u32,
    /// Identifies the request in its reply and in interrupts.
    pub unique: u64,
    /// The inode it is about.
    pub ino: Ino,
    /// The caller's user id; `u32::MAX` where an id-mapped connection hides it.
    pub uid: u32,
    /// The caller's group id; `u32::MAX` where an id-mapped connection hides it.
    pub gid: u32,
    /// The caller's process id in the mounter's namespace.
    pub pid: u32,
    /// Length of the whole request in bytes, this header counted.
    pub len: u32,
    /// Length in bytes of the extensions at its end.
    pub extension_len: u32,
}

/// A request of the kernel.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Find a name in a directory.
    Lookup {
        /// The name.
        name: &'a [u8],
    },
    /// Return references of one inode (no reply).
    Forget {
        /// How many.
        count: u64,
    },
    /// Return references of several inodes (no reply).
    BatchForget(Forgets<'a>),
    /// Tell attributes.
    GetAttr,
    /// Tell attributes, statx(2) form.
    StatX,
    /// Change attributes.
    SetAttr(SetAttrRequest),
    /// Tell a symbolic link's target.
    ReadLink,
    /// Make a symbolic link.
    Symlink {
        /// Its name.
        name: &'a [u8],
        /// Its target.
        target: &'a [u8],
        /// What else came with it.
        extensions: Extensions<'a>,
    },
    /// Make a file that is neither directory nor symbolic link.
    Mknod {
        /// Its name.
        name: &'a [u8],
        /// Type and permission bits.
        mode: u32,
        /// Device number as `makedev(3)` packs it.
        rdev: u64,
        /// The caller's umask.
        umask: u32,
        /// What else came with it.
        extensions: Extensions<'a>,
    },
    /// Make a directory.
    Mkdir {
        /// Its name.
        name: &'a [u8],
        /// Permission bits.
        mode: u32,
        /// The caller's umask.
        umask: u32,
        /// What else came with it.
        extensions: Extensions<'a>,
    },
    /// Remove a name of something that is not a directory.
    Unlink {
        /// The name.
        name: &'a [u8],
    },
    /// Remove a directory.
    Rmdir {
        /// Its name.
        name: &'a [u8],
    },
    /// Rename (both forms).
    Rename {
        /// The old name.
        name: &'a [u8],
        /// The new parent.
        new_parent: Ino,
        /// The new name.
        new_name: &'a [u8],
        /// Flags of renameat2(2).
        flags: u32,
    },
    /// Give an inode another name in the header's directory.
    Link {
        /// The inode.
        ino: Ino,
        /// The name.
        name: &'a [u8],
    },
    /// Open a file.
    Open(OpenRequest),
    /// Open a directory.
    OpenDir(OpenRequest),
    /// Make and open a file.
    Create(CreateRequest<'a>),
    /// Make and open a file without a name.
    TmpFile(CreateRequest<'a>),
    /// Read from a file.
    Read(ReadRequest),
    /// List a directory.
    ReadDir {
        /// The offset is a cookie.
        read: ReadRequest,
        /// With attributes; each entry that has them takes a reference.
        plus: bool,
    },
    /// Write to a file.
    Write(WriteRequest<'a>),
    /// Tell the file system's space.
    StatFs,
    /// The last reference to an open file or directory is gone.
    Release(ReleaseRequest),
    /// Make a file or directory durable.
    Fsync {
        /// The open file.
        fh: u64,
        /// Only what is needed to read the data or names back.
        data_only: bool,
    },
    /// Make everything durable.
    SyncFs,
    /// Set an extended attribute.
    SetXattr(SetXattrRequest<'a>),
    /// Read an extended attribute.
    GetXattr {
        /// Its name.
        name: &'a [u8],
        /// Room for the value; 0 asks for its length.
        size: u32,
    },
    /// List extended attributes.
    ListXattr {
        /// Room for the list; 0 asks for its length.
        size: u32,
    },
    /// Remove an extended attribute.
    RemoveXattr {
        /// Its name.
        name: &'a [u8],
    },
    /// A descriptor of an open file was closed.
    Flush {
        /// The open file.
        fh: u64,
        /// Owner of POSIX locks on the file, which are released.
        lock_owner: u64,
    },
    /// The first request.
    Init(InitRequest),
    /// Find a lock in the way.
    GetLk(LockRequest),
    /// Set or clear a lock, without waiting.
    SetLk(LockRequest),
    /// Set a lock, waiting for it.
    SetLkW(LockRequest),
    /// access(2), only without `default_permissions`.
    Access {
        /// `R_OK`, `W_OK`, `X_OK`.
        mask: u32,
    },
    /// The caller of another request got a signal (no reply needed).
    Interrupt {
        /// The other request.
        unique: u64,
    },
    /// The last request.
    Destroy,
    /// ioctl(2).
    Ioctl {
        /// The open file.
        fh: u64,
        /// The command.
        command: u32,
        /// What the argument points to.
        input: &'a [u8],
        /// Room for the answer.
        out_size: u32,
    },
    /// fallocate(2).
    Fallocate {
        /// The open file.
        fh: u64,
        /// Start in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// Mode of fallocate(2).
        mode: u32,
    },
    /// lseek(2) for data and holes.
    Lseek {
        /// The open file.
        fh: u64,
        /// Where to start.
        offset: u64,
        /// `SEEK_DATA` or `SEEK_HOLE`.
        whence: u32,
    },
    /// copy_file_range(2).
    CopyFileRange(CopyRequest),
    /// The kernel answers a notification that asked for data (none here does).
    NotifyReply,
    /// An operation of another ABI, or one that is never served: BMAP, which is for block devices,
    /// and POLL, which is for files that are not always ready.
    Unknown,
}

/// INIT as the kernel sends it.
#[derive(Clone, Copy, Debug)]
pub struct InitRequest {
    /// Major version of the kernel's ABI.
    pub major: u32,
    /// Minor version of the kernel's ABI.
    pub minor: u32,
    /// Readahead the kernel would like, in bytes.
    pub max_readahead: u32,
    /// What the kernel offers.
    pub flags: InitFlags,
}

/// SETATTR.
#[derive(Clone, Copy, Debug)]
pub struct SetAttrRequest {
    /// What to change.
    pub set: SetAttr,
    /// Through this open file.
    pub fh: Option<u64>,
    /// The caller may not keep set-id bits.
    pub kill_suidgid: bool,
}

/// OPEN and OPENDIR.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// Flags of open(2).
    pub flags: i32,
    /// A truncating open; the caller may not keep set-id bits.
    pub kill_suidgid: bool,
}

/// CREATE and TMPFILE.
#[derive(Clone, Copy, Debug)]
pub struct CreateRequest<'a> {
    /// The name (meaningless for TMPFILE).
    pub name: &'a [u8],
    /// Type and permission bits.
    pub mode: u32,
    /// The caller's umask.
    pub umask: u32,
    /// Flags of open(2).
    pub flags: i32,
    /// A truncating open; the caller may not keep set-id bits.
    pub kill_suidgid: bool,
    /// What else came with it.
    pub extensions: Extensions<'a>,
}

/// READ, READDIR, READDIRPLUS.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The open file.
    pub fh: u64,
    /// Where to start: bytes, or a cookie.
    pub offset: u64,
    /// Bytes wanted.
    pub size: u32,
    /// Flags of the open file.
    pub flags: i32,
}

/// SETXATTR.
#[derive(Clone, Copy, Debug)]
pub struct SetXattrRequest<'a> {
    /// The attribute's name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Flags of setxattr(2).
    pub flags: u32,
    /// An access ACL that must clear the set-group-id bit.
    pub kill_sgid: bool,
}

/// WRITE.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    /// The open file.
    pub fh: u64,
    /// Where to start, in bytes.
    pub offset: u64,
    /// What to write.
    pub data: &'a [u8],
    /// Flags of the open file.
    pub flags: i32,
    /// Delayed writing of the kernel's cache: the open file is a guess.
    pub from_cache: bool,
    /// The caller may not keep set-id bits.
    pub kill_suidgid: bool,
}

/// RELEASE and RELEASEDIR.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseRequest {
    /// The open file.
    pub fh: u64,
    /// Release the open file's flock(2) lock.
    pub flock_unlock: bool,
    /// Owner of locks.
    pub lock_owner: u64,
}

/// What a lock request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockType {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
    /// None: unlock.
    Unlock,
}

/// GETLK, SETLK, SETLKW.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest {
    /// The open file.
    pub fh: u64,
    /// Owner of the lock.
    pub owner: u64,
    /// First byte.
    pub start: u64,
    /// Last byte; `i64::MAX` or more: to the end.
    pub end: u64,
    /// What is asked for.
    pub kind: LockType,
    /// Process that asks.
    pub pid: u32,
    /// A flock(2) lock.
    pub flock: bool,
}

/// COPY_FILE_RANGE, both forms.
#[derive(Clone, Copy, Debug)]
pub struct CopyRequest {
    /// Open file to copy from (the header has its inode).
    pub fh_in: u64,
    /// Where to start there, in bytes.
    pub offset_in: u64,
    /// Inode to copy to.
    pub ino_out: Ino,
    /// Open file to copy to.
    pub fh_out: u64,
    /// Where to start there, in bytes.
    pub offset_out: u64,
    /// Length in bytes.
    pub len: u64,
    /// Flags of copy_file_range(2).
    pub flags: u64,
    /// The form with a reply of 64 bits.
    pub wide: bool,
}

/// The list of a BATCH_FORGET.
#[derive(Clone, Copy, Debug)]
pub struct Forgets<'a> {
    /// Records of 16 bytes, checked to be whole.
    pub(super) records: &'a [u8],
}

impl Forgets<'_> {
    /// Inodes, each with the number of returned references.
    pub fn iter(&self) -> impl Iterator<Item = (Ino, u64)> + '_ {
        use super::layout::ForgetOne;
        use zerocopy::FromBytes;
        self.records
            .chunks_exact(size_of::<ForgetOne>())
            .filter_map(|record| ForgetOne::read_from_bytes(record).ok())
            .map(|one| (Ino(one.nodeid), one.nlookup))
    }
}
