//! From statx(2) to an inode record.

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_core::types::{FileFlags, Ino};
use rustix::fs::{Statx, StatxAttributes, makedev};

use crate::identity::{btime, kind, time};

/// Blocks of 512 bytes in a page.
const BLOCKS: u64 = 8;

pub(crate) fn record(ino: Ino, parent: Ino, stat: &Statx, xattrs: bool) -> InodeRecord {
    let ctime = time(stat.stx_ctime);
    let mut flags = FileFlags::empty();
    for (attribute, flag) in [
        (StatxAttributes::IMMUTABLE, FileFlags::IMMUTABLE),
        (StatxAttributes::APPEND, FileFlags::APPEND),
        (StatxAttributes::NODUMP, FileFlags::NODUMP),
    ] {
        flags.set(flag, stat.stx_attributes.contains(attribute));
    }
    InodeRecord {
        ino,
        kind: kind(stat),
        perm: stat.stx_mode & 0o7777,
        nlink: stat.stx_nlink.max(1),
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        rdev: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        size: stat.stx_size,
        atime: time(stat.stx_atime),
        mtime: time(stat.stx_mtime),
        ctime,
        btime: btime(stat).unwrap_or(ctime),
        parent,
        xattrs,
        space: StoredSpace::of(stat.stx_blocks.div_ceil(BLOCKS), stat.stx_size),
        flags,
        project: 0,
    }
}
