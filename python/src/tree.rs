//! Whole trees: all entries below a directory, as objects or as columns.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;

use holdfast::types::{Errno, is_special};
use holdfast::{Dir, File, FileSystem, Metadata, OpenOptions};

use crate::columns::{Columns, PathKind, Rows};
use crate::entry::{DirEntry, Found, append, join};
use crate::error::os_error;
use crate::many::advance;
use crate::open::Open;
use crate::path::{self, PathArg};

/// Entries between two looks at signals.
const PIECE: usize = 4096;

/// A walk in progress, each directory before what it holds.
pub(crate) struct TreeWalk {
    fs: FileSystem,
    current: Option<Level>,
    /// Directories to be listed.
    pending: Vec<Pending>,
    maxdepth: usize,
}

/// A directory that is being listed.
struct Level {
    dir: Dir,
    listing: File,
    path: Arc<[u8]>,
    depth: usize,
    /// The cookie of the last entry shown.
    after: u64,
}

/// A directory that was shown, and its name in the one above.
struct Pending {
    above: Dir,
    name: Vec<u8>,
    path: Arc<[u8]>,
    depth: usize,
}

/// An error of a directory.
pub(crate) type Failed = (Arc<[u8]>, io::Error);

impl TreeWalk {
    /// A walk below `top`, `maxdepth` levels deep.
    pub(crate) fn new(fs: FileSystem, top: &[u8], maxdepth: Option<usize>) -> io::Result<Self> {
        let dir = fs.open_dir(Path::new(OsStr::from_bytes(top)))?;
        let current = Some(Level::enter(dir, top.into(), 1)?);
        Ok(Self {
            fs,
            current,
            pending: Vec::new(),
            maxdepth: maxdepth.unwrap_or(usize::MAX),
        })
    }

    /// Shows the next entries, at most `count`; returns how many, 0 at the end. A directory that is
    /// removed meanwhile is left out.
    pub(crate) fn next(
        &mut self,
        count: usize,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> Result<usize, Failed> {
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
                    below.push(entry.name.to_vec());
                }
                shown += 1;
                visit(Found {
                    directory: &level.path,
                    name: entry.name,
                    ino: entry.ino.0,
                    kind: entry.kind,
                    metadata: attr.copied().map(Metadata::from).map_err(Errno::raw),
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
                    return Err((Arc::clone(&level.path), error.into()));
                }
                _ => {}
            }
        }
        Ok(shown)
    }
}

impl Level {
    fn enter(dir: Dir, path: Arc<[u8]>, depth: usize) -> io::Result<Self> {
        let listing = dir.open_with(".", OpenOptions::new().read(true).directory(true))?;
        Ok(Self {
            dir,
            listing,
            path,
            depth,
            after: 0,
        })
    }

    fn pending(&self, name: Vec<u8>) -> Pending {
        Pending {
            above: self.dir.clone(),
            path: join(&self.path, &name).into(),
            name,
            depth: self.depth + 1,
        }
    }
}

impl Pending {
    /// `None` if it was removed meanwhile.
    fn enter(self) -> Result<Option<Level>, Failed> {
        let dir = self.above.open_dir(OsStr::from_bytes(&self.name));
        let path = Arc::clone(&self.path);
        match dir.and_then(|dir| Level::enter(dir, path, self.depth)) {
            Ok(level) => Ok(Some(level)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err((self.path, error)),
        }
    }
}

/// Walks the tree below `top`; `visit` is called without the interpreter.
fn walk<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    mut visit: impl FnMut(Found<'_>) + Send,
) -> PyResult<()> {
    let fs = open.fs(py)?;
    let (start, as_bytes) = (top.bytes(), top.is_bytes);
    if maxdepth == Some(0) {
        return Ok(());
    }
    let begun = py.detach(move || TreeWalk::new(fs, start, maxdepth));
    let mut walk = begun.map_err(|error| os_error(py, &error, Some(&top.object), None))?;
    loop {
        let shown = py.detach(|| walk.next(PIECE, &mut visit));
        let shown = shown.map_err(|(path, error)| match path::to_python(py, &path, as_bytes) {
            Ok(path) => os_error(py, &error, Some(&path), None),
            Err(error) => error,
        })?;
        if shown == 0 {
            return Ok(());
        }
        advance(py, progress, shown)?;
    }
}

/// All entries below `top` as objects.
pub(crate) fn find<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<DirEntry>> {
    let (mut all, is_bytes) = (Vec::new(), top.is_bytes);
    walk(py, open, top, maxdepth, progress, |found| {
        all.push(DirEntry::new(open, found, is_bytes));
    })?;
    Ok(all)
}

/// All entries below `top` as columns.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    paths: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Columns> {
    let mut rows = Rows::new(Some(PathKind::of(paths)?));
    let (mut path, mut pushed) = (Vec::new(), Ok(()));
    walk(py, open, top, maxdepth, progress, |found| {
        if pushed.is_ok() {
            path.clear();
            append(&mut path, found.directory, found.name);
            let metadata = found.metadata.as_ref().ok();
            pushed = rows.push(Some(&path), found.ino, found.kind, metadata);
        }
    })?;
    pushed?;
    rows.finish()
}
