//! Calls for which rivals have no safe wrapper: xfs's own way to ask for all inodes, and where a
//! file lies.
#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use holdfast_types::Errno;
use std::fs::File;
use std::hint::black_box;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Inodes asked for by one call.
const BATCH: usize = 1024;
/// `XFS_IOC_BULKSTAT` of `xfs_fs.h`: `_IOR('X', 127, struct xfs_bulkstat_req)`. The size of that
/// struct is the size of its header.
const BULKSTAT: libc::c_ulong = 2 << 30 | 64 << 16 | (b'X' as libc::c_ulong) << 8 | 127;
/// `XFS_BULK_IREQ_AGNO`: only of one allocation group.
const ONE_GROUP: u32 = 1;

/// `struct xfs_bulkstat_req`.
#[repr(C)]
struct Request {
    /// The number to begin with; where to go on afterwards.
    ino: u64,
    flags: u32,
    wanted: u32,
    found: u32,
    group: u32,
    reserved: [u64; 5],
    /// `struct xfs_bulkstat`, of which nothing is read here.
    inodes: [[u64; 24]; BATCH],
}

const _: () = assert!(size_of::<Request>() == 64 + 192 * BATCH);

/// Asks an xfs for the attributes of all inodes of every `parts`th allocation group; gives their
/// number.
///
/// # Errors
/// `ENOTTY` or `EOPNOTSUPP` from any other file system.
pub(super) fn xfs_bulkstat(root: &File, part: usize, parts: usize) -> Result<u64, Errno> {
    let mut met = 0;
    let mut group = u32::try_from(part).map_err(|_| Errno::EINVAL)?;
    let step = u32::try_from(parts).map_err(|_| Errno::EINVAL)?;
    let mut request = Box::new(Request {
        ino: 0,
        flags: ONE_GROUP,
        wanted: BATCH as u32,
        found: 0,
        group,
        reserved: [0; 5],
        inodes: [[0; 24]; BATCH],
    });
    loop {
        request.group = group;
        // SAFETY: the structure is the call's, with room for as many inodes as it says, and lives
        // across the call.
        let code = unsafe { libc::ioctl(root.as_raw_fd(), BULKSTAT, &raw mut *request) };
        if code != 0 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return match error {
                // No such group: all were asked.
                Some(libc::EINVAL) if group > 0 => Ok(met),
                error => Err(Errno::from_raw(error.unwrap_or(libc::EIO))),
            };
        }
        if request.found == 0 {
            request.ino = 0;
            group += step;
            continue;
        }
        black_box(&request.inodes);
        met += u64::from(request.found);
    }
}

/// `FS_IOC_FIEMAP` of `linux/fs.h`: `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: libc::c_ulong = 3 << 30 | 32 << 16 | (b'f' as libc::c_ulong) << 8 | 11;

/// `struct fiemap`, without room for extents: they are counted then.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Fiemap>() == 32);

/// In how many extents a file lies, as its file system says.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where it does not say.
pub(super) fn extents(file: impl AsFd) -> Result<u64, Errno> {
    let mut request = Fiemap {
        start: 0,
        length: u64::MAX,
        flags: 0,
        mapped: 0,
        room: 0,
        reserved: 0,
    };
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the structure is the call's, has room for no extents as it says, and lives across the
    // call.
    let code = unsafe { libc::ioctl(fd, FIEMAP, &raw mut request) };
    if code != 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        return Err(Errno::from_raw(error.unwrap_or(libc::EIO)));
    }
    Ok(u64::from(request.mapped))
}
