//! The types and constants of `holdfast.h`: cbindgen reads this file, comments included.

#![expect(non_camel_case_types, reason = "C's names")]

use libc::c_char;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// `hf_open_volume`: for reading only. Several processes may do so at the same time.
pub const HF_READ_ONLY: u32 = 1;
/// `hf_open_volume`: make the volume in a new image file if there is none.
pub const HF_OPEN_OR_CREATE: u32 = 2;
/// `hf_create_volume`: overwrite what the file or device holds.
pub const HF_FORCE: u32 = 4;
/// A use does not change access times.
pub const HF_NOATIME: u32 = 8;
/// Every change is durable when its call returns.
pub const HF_SYNC: u32 = 16;

/// `hf_rename`: fail with `EEXIST` if the new name exists.
pub const HF_RENAME_NOREPLACE: u32 = 1;
/// `hf_rename`: exchange the two names.
pub const HF_RENAME_EXCHANGE: u32 = 2;
/// `hf_rename`: leave a whiteout at the old name.
pub const HF_RENAME_WHITEOUT: u32 = 4;

/// `hf_setxattr`: fail with `EEXIST` if the attribute exists.
pub const HF_XATTR_CREATE: u32 = 1;
/// `hf_setxattr`: fail with `ENODATA` if the attribute does not exist.
pub const HF_XATTR_REPLACE: u32 = 2;

/// `hf_utimens`, `hf_chown`: a symbolic link itself.
pub const HF_NOFOLLOW: u32 = 1;

/// `hf_warm`: read the content of files too.
pub const HF_WARM_CONTENT: u32 = 1;

/// A file system for one user, or a directory of one; see `hf_memory`, `hf_subdir`.
pub struct hf_fs {
    _opaque: (),
}

/// An open file; see `hf_open`.
pub struct hf_file {
    _opaque: (),
}

/// A listing of a directory; see `hf_opendir`.
pub struct hf_dir {
    _opaque: (),
}

/// How `hf_memory` makes a file system. 0 is the default of each field.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_memory_options {
    /// sizeof (struct hf_memory_options)
    pub size: u32,
    /// The mode of the root directory; 0: 0755.
    pub mode: u32,
    /// Most bytes of names and content; 0: no limit.
    pub bytes_max: u64,
    /// Most inodes; 0: no limit.
    pub inodes_max: u64,
}

/// How a volume is made or opened. 0 is the default of each field.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_volume_options {
    /// sizeof (struct hf_volume_options)
    pub size: u32,
    /// HF_READ_ONLY, HF_OPEN_OR_CREATE, HF_FORCE, HF_NOATIME, HF_SYNC
    pub flags: u32,
    /// Bytes of memory that all file systems of this process may take together.
    pub memory: u64,
    /// The longest time in milliseconds until a change is durable without hf_sync; 0: 5 seconds.
    pub commit_ms: u32,
    /// A new volume: the mode of the root directory; 0: 0755.
    pub mode: u32,
    /// A new volume: its bytes; 0: the free space of the host's file system.
    pub volume_size: u64,
    /// A new volume: the bytes of its journal; 0: chosen by the volume's size.
    pub journal_size: u64,
    /// A new volume: its name, at most 63 bytes and a NUL.
    pub label: [c_char; 64],
}

/// A time, as struct timespec.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_timespec {
    /// Seconds since 1970.
    pub tv_sec: i64,
    /// Nanoseconds: 0 to 999,999,999. `hf_utimens` takes UTIME_NOW and UTIME_OMIT, too.
    pub tv_nsec: i64,
}

/// The attributes of an inode, as struct stat.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_stat {
    /// sizeof (struct hf_stat): set it before the call.
    pub size: u32,
    /// Type and permissions.
    pub st_mode: u32,
    /// The number of the inode.
    pub st_ino: u64,
    /// Length in bytes.
    pub st_size: u64,
    /// Space held, in units of 512 bytes.
    pub st_blocks: u64,
    /// The number of a device, as makedev(3) packs it.
    pub st_rdev: u64,
    /// Number of names.
    pub st_nlink: u32,
    /// Owner.
    pub st_uid: u32,
    /// Owning group.
    pub st_gid: u32,
    /// The preferred size of reads and writes.
    pub st_blksize: u32,
    /// Last access.
    pub st_atim: hf_timespec,
    /// Last change of the content.
    pub st_mtim: hf_timespec,
    /// Last change of the inode.
    pub st_ctim: hf_timespec,
    /// Creation.
    pub st_btim: hf_timespec,
}

/// Space and inodes of a file system, as struct statvfs.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_statvfs {
    /// sizeof (struct hf_statvfs): set it before the call.
    pub size: u32,
    /// 1 (ST_RDONLY) if it is read-only.
    pub f_flag: u32,
    /// Block size in bytes.
    pub f_bsize: u64,
    /// The unit of the numbers of blocks, in bytes.
    pub f_frsize: u64,
    /// Blocks.
    pub f_blocks: u64,
    /// Free blocks.
    pub f_bfree: u64,
    /// Free blocks that a file can get.
    pub f_bavail: u64,
    /// Inodes.
    pub f_files: u64,
    /// Free inodes.
    pub f_ffree: u64,
    /// Free inodes that a file can get.
    pub f_favail: u64,
    /// Longest name in bytes.
    pub f_namemax: u64,
}

/// An entry of a directory, as struct dirent.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_dirent {
    /// sizeof (struct hf_dirent): set it before the call.
    pub size: u32,
    /// 0, or a positive errno: why the attributes could not be read.
    pub error: i32,
    /// The number of the inode.
    pub d_ino: u64,
    /// DT_REG, DT_DIR, DT_LNK, ...
    pub d_type: u32,
    /// Bytes of the name.
    pub d_namlen: u32,
    /// The name and a NUL.
    pub d_name: [c_char; 256],
}

/// What `hf_read_many` read of one path.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
pub struct hf_content {
    /// sizeof (struct hf_content): set that of the first one before the call.
    pub size: u32,
    /// 0, or a positive errno.
    pub error: i32,
    /// Where the content begins in the buffer.
    pub offset: u64,
    /// The length of the file in bytes.
    pub length: u64,
}
