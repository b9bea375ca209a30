//! `dir:PATH`: any directory of the host, through system calls.

use super::folder::Folder;
use super::sys::{extents, xfs_bulkstat};
use super::volume::drop_host_caches;
use super::{Io, OpenHow, Session, Tree};
use anyhow::Result;
use holdfast_types::Errno;
use rustix::fs::{
    AtFlags, Mode, OFlags, RawDir, chmodat, fsync, ftruncate, mkdirat, openat, statat, syncfs,
    unlinkat,
};
use rustix::io::{self, pread, pwrite, write};
use std::ffi::CStr;
use std::fs::File;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Bytes asked for by one getdents64(2), as the C library does.
const LISTING_BYTES: usize = 32 << 10;

/// A fresh folder below the directory, removed with its content when dropped.
pub(crate) struct DirectoryTree {
    folder: Folder,
    /// What paths are relative to: walks begin at the tree, as deep as in any other target.
    root: File,
}

impl DirectoryTree {
    /// Makes the folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let folder = Folder::fresh_in(parent)?;
        let root = File::open(folder.path())?;
        Ok(Self { folder, root })
    }
}

impl Tree for DirectoryTree {
    type Session<'t> = DirectorySession<'t>;

    fn session(&self) -> DirectorySession<'_> {
        let listing = vec![MaybeUninit::uninit(); LISTING_BYTES].into_boxed_slice();
        DirectorySession {
            root: &self.root,
            listing,
        }
    }

    fn close(self) -> Result<()> {
        drop(self.root);
        self.folder.close()
    }
}

/// System calls below the folder.
pub(crate) struct DirectorySession<'t> {
    root: &'t File,
    listing: Box<[MaybeUninit<u8>]>,
}

/// The path from the folder on.
#[inline]
fn below(path: &CStr) -> &CStr {
    &path[1..]
}

#[inline]
fn checked<T>(result: io::Result<T>) -> Result<T, Errno> {
    result.map_err(|error| Errno::from_raw(error.raw_os_error()))
}

impl Session for DirectorySession<'_> {
    fn make_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        checked(mkdirat(self.root, below(path), Mode::from_raw_mode(0o755)))
    }

    fn create(&mut self, path: &CStr) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        checked(openat(
            self.root,
            below(path),
            flags,
            Mode::from_raw_mode(0o644),
        ))
        .map(drop)
    }

    fn stat(&mut self, path: &CStr) -> Result<(), Errno> {
        black_box(checked(statat(self.root, below(path), AtFlags::empty()))?);
        Ok(())
    }

    fn open(&mut self, path: &CStr) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        checked(openat(self.root, below(path), flags, Mode::empty())).map(drop)
    }

    fn walk(&mut self, path: &CStr) -> Result<u64, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = checked(openat(self.root, below(path), flags, Mode::empty()))?;
        let mut listing = RawDir::new(&dir, &mut self.listing);
        let mut entries = 0;
        while let Some(entry) = listing.next() {
            let entry = checked(entry)?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                black_box(checked(statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW))?);
                entries += 1;
            }
        }
        Ok(entries)
    }

    fn chmod(&mut self, path: &CStr) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(0o600);
        checked(chmodat(self.root, below(path), mode, AtFlags::empty()))
    }

    fn bulkstat(&mut self, part: usize, parts: usize) -> Result<u64, Errno> {
        xfs_bulkstat(self.root, part, parts)
    }

    fn sync(&mut self) -> Result<(), Errno> {
        checked(syncfs(self.root))
    }

    fn chill(&mut self) -> Result<(), Errno> {
        self.sync()?;
        drop_host_caches()
    }

    fn unlink(&mut self, path: &CStr) -> Result<(), Errno> {
        checked(unlinkat(self.root, below(path), AtFlags::empty()))
    }

    fn remove_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        checked(unlinkat(self.root, below(path), AtFlags::REMOVEDIR))
    }
}

impl Io for DirectorySession<'_> {
    type File = OwnedFd;

    fn open_file(&mut self, path: &CStr, how: OpenHow) -> Result<OwnedFd, Errno> {
        let flags = match how {
            OpenHow::Make => OFlags::CREATE | OFlags::RDWR,
            OpenHow::Write => OFlags::RDWR,
            OpenHow::Append => OFlags::WRONLY | OFlags::APPEND,
            OpenHow::Read => OFlags::RDONLY,
        };
        checked(openat(
            self.root,
            below(path),
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o644),
        ))
    }

    #[inline]
    fn read_at(&mut self, file: &OwnedFd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        checked(pread(file, buffer, offset))
    }

    #[inline]
    fn write_at(&mut self, file: &OwnedFd, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        checked(pwrite(file, data, offset))
    }

    #[inline]
    fn append(&mut self, file: &OwnedFd, data: &[u8]) -> Result<usize, Errno> {
        checked(write(file, data))
    }

    fn set_size(&mut self, file: &OwnedFd, size: u64) -> Result<(), Errno> {
        checked(ftruncate(file, size))
    }

    fn fsync(&mut self, file: &OwnedFd) -> Result<(), Errno> {
        checked(fsync(file))
    }

    fn extents(&mut self, file: &OwnedFd) -> Result<Option<u64>, Errno> {
        match extents(file) {
            // tmpfs and others have no such call.
            Err(Errno::EOPNOTSUPP | Errno::ENOTTY) => Ok(None),
            checked => checked.map(Some),
        }
    }
}
