//! Extended attributes and targets of links: by the name of the file, since a descriptor that only names it shows none.

use holdfast_core::store::XattrList;
use holdfast_core::types::{Errno, Result};
use rustix::fs::{lgetxattr, llistxattr, readlinkat};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::host::errno;

/// Bytes of names or of a value that the kernel lets a file have.
const MOST: usize = 64 << 10;
/// Namespaces that a mount shows. (`system.` has things that mean nothing elsewhere, such as the lists of NFS.)
const SHOWN: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system.posix_acl_"];

fn path(dir: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// The names of the attributes of a file.
fn names(path: &[u8]) -> Result<Vec<Box<[u8]>>> {
    let mut list = Vec::with_capacity(1024);
    let listed = match llistxattr(path, rustix::buffer::spare_capacity(&mut list)).map_err(errno) {
        Err(Errno::ERANGE) => {
            list.reserve(MOST);
            llistxattr(path, rustix::buffer::spare_capacity(&mut list)).map_err(errno)
        }
        listed => listed,
    };
    match listed {
        // Not for us, or gone meanwhile.
        Err(Errno::EACCES | Errno::EPERM | Errno::ENOENT) => return Ok(Vec::new()),
        listed => listed?,
    };
    let names = list.split(|byte| *byte == 0);
    let shown = names.filter(|name| SHOWN.iter().any(|prefix| name.starts_with(prefix)));
    Ok(shown.map(Into::into).collect())
}

/// Has a file any that are shown?
///
/// # Errors
/// `EOPNOTSUPP` of a file system that has none; those of listxattr(2).
pub(crate) fn has_any(dir: BorrowedFd<'_>, name: &[u8]) -> Result<bool> {
    Ok(!names(&path(dir, name))?.is_empty())
}

/// All that are shown, with their values.
pub(crate) fn all(dir: BorrowedFd<'_>, name: &[u8]) -> Result<XattrList> {
    let path = path(dir, name);
    let mut all = XattrList::new();
    for name in names(&path)? {
        let mut value = Vec::with_capacity(256);
        let mut got = lgetxattr(&path, &*name, rustix::buffer::spare_capacity(&mut value));
        if got == Err(rustix::io::Errno::RANGE) {
            value.reserve(MOST);
            got = lgetxattr(&path, &*name, rustix::buffer::spare_capacity(&mut value));
        }
        match got.map_err(errno) {
            // It went meanwhile, or is not for us.
            Err(Errno::ENODATA | Errno::EACCES | Errno::EPERM | Errno::EOPNOTSUPP) => {}
            got => {
                got?;
                all.push((name, value.into()));
            }
        }
    }
    Ok(all)
}

/// The target of a symbolic link.
pub(crate) fn target(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Box<[u8]>> {
    let target = readlinkat(dir, name, Vec::new()).map_err(errno)?;
    Ok(target.into_bytes().into())
}
