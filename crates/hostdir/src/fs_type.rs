//! What is known of the types of file systems that a host may have.

use rustix::fs::{StatxFlags, fstatfs};
use std::os::fd::BorrowedFd;

/// FUSE: its server may report anything.
const SERVED: u64 = 0x6573_5546;

/// Fields requested by statx(2). The kernel does not cache the time of birth of a FUSE host's file,
/// so it would cost another request.
const ASKED_SERVED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);
const ASKED: StatxFlags = ASKED_SERVED.union(StatxFlags::BTIME);

/// File systems of several devices (overlayfs, btrfs, bcachefs): the number in a listing need not
/// be that of the file.
const OF_SEVERAL_DEVICES: [u64; 3] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e];
/// File systems with files of size 0 that have content: procfs, sysfs, debugfs, tracefs,
/// securityfs, cgroup, cgroup2, configfs, the file system of bpf(2), selinuxfs, smackfs,
/// binfmt_misc, nfsd, rpc_pipefs, fusectl, resctrl.
const WITHOUT_SIZES: [u64; 16] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x0027_e0eb,
    0x6367_7270,
    0x6265_6570,
    0xcafe_4a11,
    0xf97c_ff8c,
    0x4341_5d53,
    0x4249_4e4d,
    0x6e66_7364,
    0x6759_6969,
    0x6573_5543,
    0x0765_5821,
];
/// File systems that only this machine changes: ext2 to ext4, XFS, btrfs, bcachefs, F2FS, ZFS, JFS,
/// NILFS, tmpfs, ramfs, overlayfs, EROFS, SquashFS, FAT, exFAT, NTFS, UDF, ISO 9660.
const LOCAL: [u64; 18] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xca45_1a4e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0x3153_464a,
    0x3434,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0xe0f5_e1e2,
    0x7371_7368,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
    0x1501_3346,
    0x9660,
];

/// The type of a file system, by its number in statfs(2).
#[derive(Clone, Copy)]
pub(crate) struct FsType(u64);

impl FsType {
    /// That of an open file. An unknown one is treated as FUSE.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Self {
        Self(fstatfs(file).map_or(SERVED, |of| of.f_type.cast_unsigned()))
    }

    /// Fields to request of each file by statx(2): always the same, so that identities compare.
    pub(crate) fn asked(self) -> StatxFlags {
        match self.0 {
            SERVED => ASKED_SERVED,
            _ => ASKED,
        }
    }

    /// Are the numbers in listings those of the files? `None`: a sample is to be compared.
    pub(crate) fn trusts_listings(self) -> Option<bool> {
        (self.0 != SERVED).then(|| !OF_SEVERAL_DEVICES.contains(&self.0))
    }

    /// Are sizes the length of the content? `None`: except size 0.
    pub(crate) fn tells_sizes(self) -> Option<bool> {
        (self.0 != SERVED).then(|| !WITHOUT_SIZES.contains(&self.0))
    }

    /// Are changes by others all reported?
    pub(crate) fn is_local(self) -> bool {
        LOCAL.contains(&self.0)
    }
}
