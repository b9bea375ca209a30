//! The structures of the FUSE ABI, byte for byte, as the kernel sends and expects them.
//!
//! Numbers are in the machine's byte order, as the ABI defines. Unused fields are kept for the
//! size.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Declares structures of plain integers without padding.
macro_rules! layouts {
    ($($(#[$meta:meta])* $name:ident ($size:literal) { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub(crate) struct $name { $(pub(crate) $field: $type),* }
            const _: () = assert!(size_of::<$name>() == $size);
        )*
    };
}

layouts! {
    /// In front of every request.
    InHeader(40) {
        len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32,
        total_extlen: u16, padding: u16,
    }
    /// In front of every reply and notification.
    OutHeader(16) { len: u32, error: i32, unique: u64 }

    InitIn(16) { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    /// What INIT_EXT adds to the request.
    InitInExt(48) { flags2: u32, unused: [u32; 11] }
    InitOut(64) {
        major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16,
        congestion_threshold: u16, max_write: u32, time_gran: u32, max_pages: u16,
        map_alignment: u16, flags2: u32, max_stack_depth: u32, request_timeout: u16,
        unused: [u16; 11],
    }

    ForgetIn(8) { nlookup: u64 }
    ForgetOne(16) { nodeid: u64, nlookup: u64 }
    BatchForgetIn(8) { count: u32, dummy: u32 }
    GetAttrIn(16) { flags: u32, dummy: u32, fh: u64 }
    SetAttrIn(88) {
        valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: u64, mtime: u64,
        ctime: u64, atime_nsec: u32, mtime_nsec: u32, ctime_nsec: u32, mode: u32, unused4: u32,
        uid: u32, gid: u32, unused5: u32,
    }
    MknodIn(16) { mode: u32, rdev: u32, umask: u32, padding: u32 }
    MkdirIn(8) { mode: u32, umask: u32 }
    RenameIn(8) { newdir: u64 }
    Rename2In(16) { newdir: u64, flags: u32, padding: u32 }
    LinkIn(8) { oldnodeid: u64 }
    OpenIn(8) { flags: u32, open_flags: u32 }
    CreateIn(16) { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    ReadIn(40) {
        fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32,
        padding: u32,
    }
    WriteIn(40) {
        fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32,
        padding: u32,
    }
    ReleaseIn(24) { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    FlushIn(24) { fh: u64, unused: u32, padding: u32, lock_owner: u64 }
    FsyncIn(16) { fh: u64, fsync_flags: u32, padding: u32 }
    /// The form without SETXATTR_EXT.
    SetXattrShort(8) { size: u32, flags: u32 }
    /// The form with SETXATTR_EXT.
    SetXattrIn(16) { short: SetXattrShort, setxattr_flags: u32, padding: u32 }
    GetXattrIn(8) { size: u32, padding: u32 }
    LkIn(48) {
        fh: u64, owner: u64, start: u64, end: u64, kind: u32, pid: u32, lk_flags: u32,
        padding: u32,
    }
    AccessIn(8) { mask: u32, padding: u32 }
    InterruptIn(8) { unique: u64 }
    IoctlIn(32) { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    FallocateIn(32) { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    LseekIn(24) { fh: u64, offset: u64, whence: u32, padding: u32 }
    CopyFileRangeIn(56) {
        fh_in: u64, off_in: u64, nodeid_out: u64, fh_out: u64, off_out: u64, len: u64, flags: u64,
    }
    SyncFsIn(8) { padding: u64 }
    StatxIn(24) { getattr_flags: u32, reserved: u32, fh: u64, sx_flags: u32, sx_mask: u32 }

    ExtHeader(8) { size: u32, kind: u32 }

    AttrOutBody(88) {
        ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64, atime_nsec: u32,
        mtime_nsec: u32, ctime_nsec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32,
        blksize: u32, flags: u32,
    }
    EntryOut(128) {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32,
        attr_valid_nsec: u32, attr: AttrOutBody,
    }
    AttrOut(104) { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: AttrOutBody }
    OpenOut(16) { fh: u64, open_flags: u32, backing_id: i32 }
    CreateOut(144) { entry: EntryOut, open: OpenOut }
    StatfsOut(80) {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32,
        frsize: u32, padding: u32, spare: [u32; 6],
    }
    LkOut(24) { start: u64, end: u64, kind: u32, pid: u32 }
    IoctlOut(16) { result: i32, flags: u32, in_iovs: u32, out_iovs: u32 }
    SxTime(16) { sec: i64, nsec: u32, reserved: i32 }
    Statx(256) {
        mask: u32, blksize: u32, attributes: u64, nlink: u32, uid: u32, gid: u32, mode: u16,
        spare0: u16, ino: u64, size: u64, blocks: u64, attributes_mask: u64, atime: SxTime,
        btime: SxTime, ctime: SxTime, mtime: SxTime, rdev_major: u32, rdev_minor: u32,
        dev_major: u32, dev_minor: u32, spare2: [u64; 14],
    }
    StatxOut(288) {
        attr_valid: u64, attr_valid_nsec: u32, flags: u32, spare: [u64; 2], stat: Statx,
    }
    /// Registers a file to read and write; the ioctl answers its number.
    BackingMap(16) { fd: i32, flags: u32, padding: u64 }
    Dirent(24) { ino: u64, off: u64, namelen: u32, kind: u32 }

    NotifyInvalInode(24) { ino: u64, off: i64, len: i64 }
    NotifyInvalEntry(16) { parent: u64, namelen: u32, flags: u32 }
    NotifyPrune(16) { count: u32, padding: u32, spare: u64 }

    /// The end of the 288-byte header area of a ring entry, behind two areas of 128 bytes.
    RingEntInOut(32) {
        flags: u64, commit_id: u64, payload_len: u32, padding: u32, reserved: u64,
    }
    /// The command area of a submission.
    RingCommand(24) { flags: u64, commit_id: u64, qid: u16, padding: [u8; 6] }
}
