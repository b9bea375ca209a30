//! Extended attributes and targets of links. They are read by the path of the name or of the
//! descriptor, because an `O_PATH` descriptor gives no attributes.

use holdfast_core::store::XattrList;
use holdfast_core::types::{Errno, Result};
use rustix::fs::{getxattr, lgetxattr, listxattr, llistxattr, readlinkat};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::sys::errno;

/// The kernel's limit for the names or a value of a file, in bytes.
const MOST: usize = 64 << 10;
/// Namespaces that a mount shows. Other `system.` attributes mean nothing elsewhere, such as those
/// of NFS.
const SHOWN: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system.posix_acl_"];

/// A path to the inode of a descriptor, regardless of its names.
pub(crate) fn path_of(open: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", open.as_raw_fd())
}

/// A path to a file.
pub(crate) struct File {
    path: Vec<u8>,
    /// Is it the path of a descriptor, which must be followed?
    is_open: bool,
}

impl File {
    /// By its name in a directory.
    pub(crate) fn named(dir: BorrowedFd<'_>, name: &[u8]) -> Self {
        let mut path = path_of(dir).into_bytes();
        path.push(b'/');
        path.extend_from_slice(name);
        Self {
            path,
            is_open: false,
        }
    }

    /// By a descriptor.
    pub(crate) fn open(open: BorrowedFd<'_>) -> Self {
        Self {
            path: path_of(open).into_bytes(),
            is_open: true,
        }
    }

    fn list(&self, list: &mut Vec<u8>) -> rustix::io::Result<usize> {
        let list = rustix::buffer::spare_capacity(list);
        match self.is_open {
            true => listxattr(&*self.path, list),
            false => llistxattr(&*self.path, list),
        }
    }

    fn get(&self, name: &[u8], value: &mut Vec<u8>) -> rustix::io::Result<usize> {
        let value = rustix::buffer::spare_capacity(value);
        match self.is_open {
            true => getxattr(&*self.path, name, value),
            false => lgetxattr(&*self.path, name, value),
        }
    }

    /// Has it this attribute? `false` on an error.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let got = self.get(name, &mut Vec::with_capacity(256));
        matches!(got, Ok(_) | Err(rustix::io::Errno::RANGE))
    }
}

/// The names of the attributes of a file that are shown.
///
/// # Errors
/// `EOPNOTSUPP` of a file system that has none; those of listxattr(2).
pub(crate) fn names(file: &File) -> Result<Vec<Box<[u8]>>> {
    let mut list = Vec::with_capacity(1024);
    let listed = match file.list(&mut list).map_err(errno) {
        Err(Errno::ERANGE) => {
            list.reserve(MOST);
            file.list(&mut list).map_err(errno)
        }
        listed => listed,
    };
    match listed {
        // Not permitted, or removed meanwhile.
        Err(Errno::EACCES | Errno::EPERM | Errno::ENOENT) => return Ok(Vec::new()),
        listed => listed?,
    };
    let names = list.split(|byte| *byte == 0);
    let shown = names.filter(|name| SHOWN.iter().any(|prefix| name.starts_with(prefix)));
    Ok(shown.map(Into::into).collect())
}

/// All that are shown, with their values.
pub(crate) fn all(file: &File) -> Result<XattrList> {
    let mut all = XattrList::new();
    for name in names(file)? {
        let mut value = Vec::with_capacity(256);
        let mut got = file.get(&name, &mut value);
        if got == Err(rustix::io::Errno::RANGE) {
            value.reserve(MOST);
            got = file.get(&name, &mut value);
        }
        match got.map_err(errno) {
            // Removed meanwhile, or not permitted.
            Err(Errno::ENODATA | Errno::EACCES | Errno::EPERM | Errno::EOPNOTSUPP) => {}
            got => {
                got?;
                all.push((name, value.into()));
            }
        }
    }
    Ok(all)
}

/// The target of a symbolic link that a descriptor names.
pub(crate) fn target(open: BorrowedFd<'_>) -> Result<Box<[u8]>> {
    let target = readlinkat(open, "", Vec::new()).map_err(errno)?;
    Ok(target.into_bytes().into())
}
