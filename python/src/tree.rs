//! Whole trees: all entries below a directory, as objects or as columns.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;

use holdfast::{Dir, FileSystem, ReadDir};

use crate::columns::{Columns, PathKind, Rows};
use crate::entry::{DirEntry, join};
use crate::error::os_error;
use crate::many::advance;
use crate::open::Open;
use crate::path::{self, PathArg};

/// Entries between two looks at signals.
const PIECE: usize = 4096;

/// A walk in progress, each directory before what it holds.
pub(crate) struct TreeWalk {
    levels: Vec<Level>,
    maxdepth: usize,
}

/// A directory that is being listed.
struct Level {
    dir: Dir,
    listing: ReadDir,
    path: Arc<[u8]>,
}

/// An entry, and the path of its directory.
pub(crate) type Found = (Arc<[u8]>, holdfast::DirEntry);

/// An error of a directory.
pub(crate) type Failed = (Arc<[u8]>, io::Error);

impl TreeWalk {
    /// A walk below `top`, `maxdepth` levels deep.
    pub(crate) fn new(fs: &FileSystem, top: &[u8], maxdepth: Option<usize>) -> io::Result<Self> {
        let dir = fs.open_dir(Path::new(OsStr::from_bytes(top)))?;
        Ok(Self {
            levels: vec![Level {
                listing: dir.read_dir(".")?,
                dir,
                path: top.into(),
            }],
            maxdepth: maxdepth.unwrap_or(usize::MAX),
        })
    }

    /// The next entries, at most `count`; none at the end. A directory that is removed meanwhile is
    /// left out.
    pub(crate) fn next(&mut self, count: usize) -> Result<Vec<Found>, Failed> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let Some(level) = self.levels.last_mut() else {
                break;
            };
            let entry = match level.listing.next() {
                Some(Ok(entry)) => entry,
                Some(Err(error)) => return Err((Arc::clone(&level.path), error)),
                None => {
                    self.levels.pop();
                    continue;
                }
            };
            let directory = Arc::clone(&level.path);
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && self.levels.len() < self.maxdepth {
                self.enter(&directory, &entry)?;
            }
            found.push((directory, entry));
        }
        Ok(found)
    }

    fn enter(&mut self, above: &[u8], entry: &holdfast::DirEntry) -> Result<(), Failed> {
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        let opened = level
            .dir
            .open_dir(entry.file_name_ref())
            .and_then(|dir| Ok((dir.read_dir(".")?, dir)));
        let path = join(above, entry.file_name_ref().as_bytes()).into();
        match opened {
            Ok((listing, dir)) => {
                self.levels.push(Level { dir, listing, path });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err((path, error)),
        }
    }
}

/// Walks the tree below `top`, and passes pieces of it to `take`.
fn walk<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    mut take: impl FnMut(Vec<Found>) -> PyResult<()>,
) -> PyResult<()> {
    let fs = open.fs(py)?;
    let (start, as_bytes) = (top.bytes(), top.is_bytes);
    if maxdepth == Some(0) {
        return Ok(());
    }
    let begun = py.detach(move || TreeWalk::new(&fs, start, maxdepth));
    let mut walk = begun.map_err(|error| os_error(py, &error, Some(&top.object), None))?;
    loop {
        let found = py.detach(|| walk.next(PIECE));
        let found = found.map_err(|(path, error)| match path::to_python(py, &path, as_bytes) {
            Ok(path) => os_error(py, &error, Some(&path), None),
            Err(error) => error,
        })?;
        if found.is_empty() {
            return Ok(());
        }
        let count = found.len();
        take(found)?;
        advance(py, progress, count)?;
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
    let mut all = Vec::new();
    walk(py, open, top, maxdepth, progress, |found| {
        for (directory, entry) in found {
            all.push(DirEntry::new(open, &directory, &entry, top.is_bytes)?);
        }
        Ok(())
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
    walk(py, open, top, maxdepth, progress, |found| {
        py.detach(|| {
            for (directory, entry) in found {
                let path = join(&directory, entry.file_name_ref().as_bytes());
                let kind = entry.file_type()?.kind();
                let metadata = entry.metadata().ok();
                rows.push(Some(&path), entry.ino(), kind, metadata.as_ref())?;
            }
            Ok(())
        })
    })?;
    rows.finish()
}
