//! `mem:`: the core with its memory store, in this process; or over a volume (`volume:PATH`).

use super::volume::Image;
use super::{Io, OpenHow, Session, Tree};
use anyhow::Result;
use holdfast_core::{Bulkstat, FileSystem, MemoryLimits, Node, OpenFile, Options, Visit};
use holdfast_types::{Caller, Errno, OpenFlags, SetAttr};
use std::ffi::CStr;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file system of its own.
pub(crate) struct MemoryTree {
    /// `None` while `chill` opens the volume again, and after `close`.
    fs: Mutex<Option<FileSystem>>,
    /// Where its files are when they are not in memory.
    image: Option<Image>,
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryTree {
    pub(crate) fn new() -> Self {
        Self::of(empty())
    }

    /// Of this file system.
    pub(crate) fn of(fs: FileSystem) -> Self {
        Self {
            fs: Mutex::new(Some(fs)),
            image: None,
        }
    }

    /// Of the file system on an image.
    pub(super) fn on(image: Image, fs: FileSystem) -> Self {
        Self {
            image: Some(image),
            ..Self::of(fs)
        }
    }

    fn take(&self) -> Option<FileSystem> {
        lock(&self.fs).take()
    }

    /// # Panics
    /// If it was closed.
    fn fs(&self) -> FileSystem {
        lock(&self.fs).clone().expect("in use until it is closed")
    }
}

fn empty() -> FileSystem {
    FileSystem::memory(MemoryLimits::default(), Options::default())
}

impl Tree for MemoryTree {
    type Session<'t> = MemorySession<'t>;

    /// # Panics
    /// If it was closed.
    fn session(&self) -> MemorySession<'_> {
        let fs = self.fs();
        MemorySession {
            root: fs.root(),
            fs,
            who: Caller::root(),
            tree: self,
        }
    }

    fn close(self) -> Result<()> {
        drop(self.take());
        match self.image {
            Some(image) => image.remove(),
            None => Ok(()),
        }
    }
}

/// The superuser's calls, as a program makes them that uses the library.
pub(crate) struct MemorySession<'t> {
    fs: FileSystem,
    root: Node,
    who: Caller,
    /// The tree's own use.
    tree: &'t MemoryTree,
}

impl Session for MemorySession<'_> {
    fn make_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        self.fs
            .mkdir_at(&self.who, &self.root, path.to_bytes(), 0o755)
            .map(drop)
    }

    fn create(&mut self, path: &CStr) -> Result<(), Errno> {
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
        let made = self
            .fs
            .open_at(&self.who, &self.root, path.to_bytes(), flags, 0o644);
        closed(&made)
    }

    fn stat(&mut self, path: &CStr) -> Result<(), Errno> {
        let path = path.to_bytes();
        black_box(self.fs.stat_at(&self.who, &self.root, path, true)?);
        Ok(())
    }

    fn open(&mut self, path: &CStr) -> Result<(), Errno> {
        let flags = OpenFlags::empty();
        let opened = self
            .fs
            .open_at(&self.who, &self.root, path.to_bytes(), flags, 0);
        closed(&opened)
    }

    /// A listing with attributes is one call here: that is how a program gets them. (A kernel
    /// has no such call, so the other targets ask for each entry's by its name.)
    fn walk(&mut self, path: &CStr) -> Result<u64, Errno> {
        let flags = OpenFlags::DIRECTORY;
        let dir = self
            .fs
            .open_at(&self.who, &self.root, path.to_bytes(), flags, 0)?;
        let mut entries = 0;
        let mut met = Ok(());
        self.fs.read_dir_plus(&dir, 0, &mut |entry, attr| {
            met = black_box(attr).map(drop);
            if entry.name != b"." && entry.name != b".." {
                entries += 1;
            }
            met.is_ok()
        })?;
        met.map(|()| entries)
    }

    fn chmod(&mut self, path: &CStr) -> Result<(), Errno> {
        let path = path.to_bytes();
        let node = self.fs.resolve(&self.who, &self.root, path, true)?;
        let set = SetAttr {
            perm: Some(0o600),
            ..SetAttr::default()
        };
        self.fs.setattr(&self.who, &node, &set, None).map(drop)
    }

    fn bulkstat(&mut self, part: usize, _parts: usize) -> Result<u64, Errno> {
        let mut met = 0;
        if part == 0 {
            self.fs.bulkstat_attributes(&mut Bulkstat::new(), |attr| {
                black_box(attr);
                met += 1;
                Ok(Visit::Continue)
            })?;
        }
        Ok(met)
    }

    fn sync(&mut self) -> Result<(), Errno> {
        self.fs.sync()
    }

    /// The session has an empty file system from then on.
    fn leave(&mut self) -> Result<(), Errno> {
        self.fs = empty();
        self.root = self.fs.root();
        Ok(())
    }

    fn chill(&mut self) -> Result<(), Errno> {
        let image = self.tree.image.as_ref().ok_or(Errno::EOPNOTSUPP)?;
        if let Some(fs) = self.tree.take() {
            fs.close()?;
        }
        let fs = image.reopened()?;
        *lock(&self.tree.fs) = Some(fs);
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Errno> {
        self.fs = self.tree.fs();
        self.root = self.fs.root();
        Ok(())
    }

    fn unlink(&mut self, path: &CStr) -> Result<(), Errno> {
        self.fs.unlink_at(&self.who, &self.root, path.to_bytes())
    }

    fn remove_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        self.fs.rmdir_at(&self.who, &self.root, path.to_bytes())
    }
}

/// The result of an open. The file is not moved: the caller drops it in place, as a program would.
#[inline]
fn closed(opened: &Result<OpenFile, Errno>) -> Result<(), Errno> {
    match opened {
        Ok(_) => Ok(()),
        Err(error) => Err(*error),
    }
}

impl Io for MemorySession<'_> {
    type File = OpenFile;

    fn open_file(&mut self, path: &CStr, how: OpenHow) -> Result<OpenFile, Errno> {
        let flags = match how {
            OpenHow::Make => OpenFlags::CREATE | OpenFlags::READ_WRITE,
            OpenHow::Write => OpenFlags::READ_WRITE,
            OpenHow::Append => OpenFlags::WRITE_ONLY | OpenFlags::APPEND,
            OpenHow::Read => OpenFlags::empty(),
        };
        self.fs
            .open_at(&self.who, &self.root, path.to_bytes(), flags, 0o644)
    }

    #[inline]
    fn read_at(&mut self, file: &OpenFile, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.fs.read(file, offset, buffer)
    }

    #[inline]
    fn write_at(&mut self, file: &OpenFile, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.fs.write(&self.who, file, offset, data)
    }

    #[inline]
    fn append(&mut self, file: &OpenFile, data: &[u8]) -> Result<usize, Errno> {
        self.fs
            .append(&self.who, file, data)
            .map(|(_, written)| written)
    }

    fn set_size(&mut self, file: &OpenFile, size: u64) -> Result<(), Errno> {
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        self.fs
            .setattr(&self.who, file.node(), &set, Some(file))
            .map(drop)
    }

    fn fsync(&mut self, file: &OpenFile) -> Result<(), Errno> {
        self.fs.fsync(file, false)
    }

    fn extents(&mut self, file: &OpenFile) -> Result<Option<u64>, Errno> {
        let image = self.tree.image.as_ref();
        image
            .map(|image| image.extents(file.node().ino()))
            .transpose()
    }
}
