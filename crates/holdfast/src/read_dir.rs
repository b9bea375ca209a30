use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec::IntoIter;

use crate::dir::os_str;
use crate::types::{self, Errno, Result, is_special};
use crate::{File, FileType, Metadata};

/// Entries read at once: enough to make the cost of a call small, little to hold.
const BATCH: usize = 128;

/// The entries of a directory, as `std::fs::ReadDir`; `.` and `..` are left out.
///
/// Entries come in an order that lasts: names made or removed meanwhile make it neither lose nor
/// repeat others.
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
    /// Position behind the batch.
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
            // POSIX wants a directory that is gone to read as empty; so does glibc.
            Ok(()) | Err(Errno::ENOENT) => {}
            // What came before a failure is told first; the next call meets the failure again.
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
/// Its attributes came with it: asking for them costs nothing, and tells how they were when the
/// entry was read. Where they could not be read the entry comes all the same, and
/// [`metadata`](DirEntry::metadata) gives the error.
#[derive(Clone)]
pub struct DirEntry {
    directory: Arc<Path>,
    name: OsString,
    ino: u64,
    kind: types::FileType,
    metadata: Result<Metadata>,
}

impl DirEntry {
    /// The path that was given to `read_dir`, with the entry's name.
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

    /// What it is; symbolic links are not followed.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(self.kind.into())
    }

    /// The attributes that came with the entry; symbolic links are not followed.
    ///
    /// # Errors
    /// What reading them met: `EIO` for an inode that the device does not give.
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
