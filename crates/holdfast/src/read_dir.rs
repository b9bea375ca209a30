use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec::IntoIter;

use crate::dir::os_str;
use crate::types::{self, Errno, Result, is_special};
use crate::{File, FileType, Metadata};

/// Entries read at once.
const BATCH: usize = 128;

/// The entries of a directory, as `std::fs::ReadDir`; `.` and `..` are left out.
///
/// The order of entries is stable: concurrent creations and removals make it neither skip nor
/// repeat other names.
///
/// ```
/// use holdfast::FileSystem;
///
/// let fs = FileSystem::memory();
/// fs.create_dir("/src")?;
/// fs.write("/src/lib.rs", "pub fn answer() -> u32 { 42 }")?;
/// let mut bytes = 0;
/// for entry in fs.read_dir("/src")? {
///     bytes += entry?.metadata()?.len();
/// }
/// assert_eq!(bytes, 29);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ReadDir {
    dir: File,
    path: Arc<Path>,
    /// The cookie of the last entry in the batch.
    after: u64,
    batch: IntoIter<DirEntry>,
    ended: bool,
}

impl ReadDir {
    pub(crate) fn new(dir: File, path: &Path) -> Self {
        Self {
            dir,
            path: path.into(),
            after: 0,
            batch: Vec::new().into_iter(),
            ended: false,
        }
    }

    fn fill(&mut self) -> Result<()> {
        let mut batch = Vec::new();
        let Self {
            dir, path, after, ..
        } = self;
        let core = &dir.view().core;
        let listed = core.read_dir_plus(dir.core_file(), *after, &mut |entry, attr| {
            if batch.len() == BATCH {
                return false;
            }
            *after = entry.cookie;
            if !is_special(entry.name) {
                batch.push(DirEntry {
                    directory: Arc::clone(path),
                    name: os_str(entry.name).to_owned(),
                    ino: entry.ino.0,
                    kind: entry.kind,
                    metadata: attr.copied().map(Metadata::from),
                });
            }
            true
        });
        match listed {
            // A removed directory reads as empty, as POSIX and glibc want it.
            Ok(()) | Err(Errno::ENOENT) => {}
            // Entries before a failure are returned first; the next call fails again.
            Err(_) if !batch.is_empty() => {}
            Err(error) => return Err(error),
        }
        self.batch = batch.into_iter();
        Ok(())
    }
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.len() == 0 && !self.ended {
            let filled = self.fill();
            self.ended = self.batch.len() == 0;
            if let Err(error) = filled {
                return Some(Err(Errno::into(error)));
            }
        }
        self.batch.next().map(Ok)
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.path).finish()
    }
}

/// One entry of a directory, as `std::fs::DirEntry`.
///
/// Its attributes were read with it: [`metadata`](DirEntry::metadata) costs nothing, and shows them
/// as they were then. If they could not be read, the entry is listed all the same, and `metadata`
/// returns the error.
#[derive(Clone)]
pub struct DirEntry {
    directory: Arc<Path>,
    name: OsString,
    ino: u64,
    kind: types::FileType,
    metadata: Result<Metadata>,
}

impl DirEntry {
    /// The path given to `read_dir`, joined with the entry's name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// The name, borrowed.
    #[must_use]
    pub fn file_name_ref(&self) -> &OsStr {
        &self.name
    }

    /// The type; symbolic links are not followed.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(self.kind.into())
    }

    /// The attributes that came with the entry; symbolic links are not followed.
    ///
    /// # Errors
    /// The error of reading them: `EIO` for an inode that the device cannot read.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.metadata.map_err(io::Error::from)
    }

    /// Inode number.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.ino
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}
