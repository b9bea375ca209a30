//! A walk over a tree with the attributes of its entries, in pieces.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;

use crate::types::{Errno, FileType, is_special};
use crate::{Dir, File, FileSystem, Metadata, OpenOptions};

/// A walk in progress, each directory before what it holds. A directory that is removed meanwhile
/// is left out.
///
/// ```
/// use holdfast::{FileSystem, TreeWalk};
///
/// let fs = FileSystem::memory();
/// fs.create_dir_all("/mail/new")?;
/// fs.write("/mail/new/1", "Dear ...")?;
/// let mut walk = TreeWalk::new(fs, "/mail", None)?;
/// let mut sizes = Vec::new();
/// let mut visit = |entry: holdfast::TreeEntry<'_>| {
///     sizes.push((entry.directory.join(entry.name), entry.metadata.unwrap().len()));
/// };
/// while walk.next(100, &mut visit).map_err(|(_, error)| error)? > 0 {}
/// assert_eq!(sizes[1], ("/mail/new/1".into(), 8));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TreeWalk {
    fs: FileSystem,
    current: Option<Level>,
    /// Directories to be listed.
    pending: Vec<Pending>,
    maxdepth: usize,
}

/// An entry of a walk.
#[derive(Debug)]
pub struct TreeEntry<'w> {
    /// The path of the directory, which begins with that of the top.
    pub directory: &'w Arc<Path>,
    /// The name in it.
    pub name: &'w OsStr,
    /// The inode's number.
    pub ino: u64,
    /// Its type.
    pub kind: FileType,
    /// The attributes, or the error of reading them.
    pub metadata: Result<Metadata, Errno>,
}

/// The error of a directory.
pub type TreeWalkError = (Arc<Path>, io::Error);

/// A directory that is being listed.
#[derive(Debug)]
struct Level {
    dir: Dir,
    listing: File,
    path: Arc<Path>,
    depth: usize,
    /// The cookie of the last entry shown.
    after: u64,
}

/// A directory that was shown, and its name in the one above.
#[derive(Debug)]
struct Pending {
    above: Dir,
    name: OsString,
    path: Arc<Path>,
    depth: usize,
}

impl TreeWalk {
    /// A walk below `top`, `maxdepth` levels deep.
    ///
    /// # Errors
    /// `ENOTDIR` if `top` is no directory; `EACCES` if the caller may not read it.
    pub fn new(fs: FileSystem, top: impl AsRef<Path>, maxdepth: Option<usize>) -> io::Result<Self> {
        let top = top.as_ref();
        let dir = fs.open_dir(top)?;
        let current = Some(Level::enter(dir, top.into(), 1)?);
        Ok(Self {
            fs,
            current,
            pending: Vec::new(),
            maxdepth: maxdepth.unwrap_or(usize::MAX),
        })
    }

    /// Shows the next entries, at most `count`; returns how many, 0 at the end.
    ///
    /// # Errors
    /// That of a directory which cannot be listed, with its path. The walk may go on after it.
    pub fn next(
        &mut self,
        count: usize,
        visit: &mut dyn FnMut(TreeEntry<'_>),
    ) -> Result<usize, TreeWalkError> {
        let mut shown = 0;
        while shown < count {
            let Some(level) = &mut self.current else {
                let Some(next) = self.pending.pop() else {
                    break;
                };
                self.current = next.enter()?;
                continue;
            };
            let mut below = Vec::new();
            let mut ended = true;
            let (mut after, deeper) = (level.after, level.depth < self.maxdepth);
            let listing = level.listing.core_file();
            let core = self.fs.core();
            let listed = core.read_dir_plus(listing, after, &mut |entry, attr| {
                if shown == count {
                    ended = false;
                    return false;
                }
                after = entry.cookie;
                if is_special(entry.name) {
                    return true;
                }
                if deeper && entry.kind.is_dir() {
                    below.push(OsString::from_vec(entry.name.to_vec()));
                }
                shown += 1;
                visit(TreeEntry {
                    directory: &level.path,
                    name: OsStr::from_bytes(entry.name),
                    ino: entry.ino.0,
                    kind: entry.kind,
                    metadata: attr.copied().map(Metadata::from),
                });
                true
            });
            level.after = after;
            self.pending
                .extend(below.into_iter().map(|name| level.pending(name)));
            match listed {
                // A removed directory lists nothing more.
                Ok(()) | Err(Errno::ENOENT) if ended => self.current = None,
                Err(error) if error != Errno::ENOENT => {
                    let path = Arc::clone(&level.path);
                    self.current = None;
                    return Err((path, error.into()));
                }
                _ => {}
            }
        }
        Ok(shown)
    }
}

impl Level {
    fn enter(dir: Dir, path: Arc<Path>, depth: usize) -> io::Result<Self> {
        let listing = dir.open_with(".", OpenOptions::new().read(true).directory(true))?;
        Ok(Self {
            dir,
            listing,
            path,
            depth,
            after: 0,
        })
    }

    fn pending(&self, name: OsString) -> Pending {
        Pending {
            above: self.dir.clone(),
            path: self.path.join(&name).into(),
            name,
            depth: self.depth + 1,
        }
    }
}

impl Pending {
    /// `None` if it was removed meanwhile.
    fn enter(self) -> Result<Option<Level>, TreeWalkError> {
        let dir = self.above.open_dir(&self.name);
        let path = Arc::clone(&self.path);
        match dir.and_then(|dir| Level::enter(dir, path, self.depth)) {
            Ok(level) => Ok(Some(level)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err((self.path, error)),
        }
    }
}
