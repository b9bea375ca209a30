//! The classes `_holdfast.DirEntry` and `_holdfast.Scan`: directories as `os.scandir` shows them.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyGenericAlias, PyType};

use holdfast::types::Errno;
use holdfast::{Metadata, NodeKind, ReadDir, TreeEntry};

use crate::error::os_error;
use crate::open::{Open, lock, without_interpreter};
use crate::path;
use crate::stat::attributes;
use crate::stat::stat_result;

/// Entries that the iterator fetches at once.
const BATCH: usize = 128;

/// One name of a directory, with the attributes that were read with it.
#[pyclass(frozen, module = "holdfast._holdfast")]
pub(crate) struct DirEntry {
    open: Arc<Open>,
    /// The path of the directory as the caller wrote it.
    directory: Arc<Path>,
    name: Box<OsStr>,
    is_bytes: bool,
    ino: u64,
    kind: NodeKind,
    /// Or the error of reading them.
    metadata: Result<Metadata, Errno>,
}

impl DirEntry {
    pub(crate) fn new(open: &Arc<Open>, found: TreeEntry<'_>, is_bytes: bool) -> Self {
        Self {
            open: Arc::clone(open),
            directory: Arc::clone(found.directory),
            name: found.name.into(),
            is_bytes,
            ino: found.ino,
            kind: found.kind,
            metadata: found.metadata,
        }
    }

    fn full_path(&self) -> PathBuf {
        self.directory.join(&*self.name)
    }

    /// The attributes of the entry, or of what it leads to.
    fn resolve(&self, py: Python<'_>, follow: bool) -> PyResult<Metadata> {
        let found = if follow && self.kind == NodeKind::Symlink {
            let (fs, path) = (self.open.fs(py)?, self.full_path());
            py.detach(move || attributes(&fs, &path, true))
        } else {
            self.open.check_process(py)?;
            self.metadata.map_err(io::Error::from)
        };
        found.map_err(|error| match self.path(py) {
            Ok(path) => os_error(py, &error, Some(&path), None),
            Err(error) => error,
        })
    }

    /// Does it lead to one of this kind? A dangling link leads to none.
    fn is_kind(&self, py: Python<'_>, follow: bool, kind: NodeKind) -> PyResult<bool> {
        if !follow || self.kind != NodeKind::Symlink {
            self.open.check_process(py)?;
            return Ok(self.kind == kind);
        }
        let fs = self.open.fs(py)?;
        let path = self.full_path();
        let found = py.detach(move || attributes(&fs, &path, true));
        Ok(found.is_ok_and(|metadata| metadata.file_type().kind() == kind))
    }
}

#[pymethods]
impl DirEntry {
    /// `DirEntry[str]` and `DirEntry[bytes]` in annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(class.py(), class, name)
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        path::to_python(py, self.name.as_bytes(), self.is_bytes)
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        path::to_python(py, self.full_path().as_os_str().as_bytes(), self.is_bytes)
    }

    fn inode(&self) -> u64 {
        self.ino
    }

    #[pyo3(signature = (*, follow_symlinks=true))]
    fn is_dir(&self, py: Python<'_>, follow_symlinks: bool) -> PyResult<bool> {
        self.is_kind(py, follow_symlinks, NodeKind::Directory)
    }

    #[pyo3(signature = (*, follow_symlinks=true))]
    fn is_file(&self, py: Python<'_>, follow_symlinks: bool) -> PyResult<bool> {
        self.is_kind(py, follow_symlinks, NodeKind::Regular)
    }

    fn is_symlink(&self) -> bool {
        self.kind == NodeKind::Symlink
    }

    #[pyo3(signature = (*, follow_symlinks=true))]
    fn stat<'py>(&self, py: Python<'py>, follow_symlinks: bool) -> PyResult<Bound<'py, PyAny>> {
        let metadata = self.resolve(py, follow_symlinks)?;
        stat_result(py, &metadata, self.open.device)
    }

    fn __fspath__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.path(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<DirEntry {}>", self.name(py)?.repr()?))
    }
}

/// A listing in progress: an iterator, and a context manager that ends it.
#[pyclass(frozen, module = "holdfast._holdfast")]
pub(crate) struct Scan {
    open: Arc<Open>,
    directory: Arc<Path>,
    is_bytes: bool,
    /// `None` when ended.
    listing: Mutex<Option<Listing>>,
}

struct Listing {
    rest: ReadDir,
    /// Read and not yet shown.
    batch: std::vec::IntoIter<io::Result<holdfast::DirEntry>>,
}

impl Scan {
    pub(crate) fn new(
        open: Arc<Open>,
        listing: ReadDir,
        directory: Arc<Path>,
        is_bytes: bool,
    ) -> Self {
        let listing = Listing {
            rest: listing,
            batch: Vec::new().into_iter(),
        };
        Self {
            open,
            directory,
            is_bytes,
            listing: Mutex::new(Some(listing)),
        }
    }

    fn next(&self) -> Option<io::Result<holdfast::DirEntry>> {
        let mut slot = lock(&self.listing);
        let listing = slot.as_mut()?;
        if listing.batch.len() == 0 {
            let batch: Vec<_> = listing.rest.by_ref().take(BATCH).collect();
            listing.batch = batch.into_iter();
        }
        listing.batch.next()
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<DirEntry>> {
        self.open.check(py)?;
        let entry = py.detach(|| self.next().transpose());
        let made = entry.and_then(|entry| {
            let Some(entry) = entry else {
                return Ok(None);
            };
            let found = TreeEntry {
                directory: &self.directory,
                name: entry.file_name_ref(),
                ino: entry.ino(),
                kind: entry.file_type()?.kind(),
                metadata: entry.metadata().map_err(Errno::from),
            };
            Ok(Some(DirEntry::new(&self.open, found, self.is_bytes)))
        });
        made.map_err(|error| {
            match path::to_python(py, self.directory.as_os_str().as_bytes(), false) {
                Ok(path) => os_error(py, &error, Some(&path), None),
                Err(error) => error,
            }
        })
    }

    fn close(&self, py: Python<'_>) {
        if !self.open.is_foreign() {
            py.detach(|| drop(lock(&self.listing).take()));
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        let slot = mem::take(&mut self.listing);
        if self.open.is_foreign() {
            mem::forget(slot);
        } else if lock(&slot).is_some() {
            without_interpreter(slot);
        }
    }
}

/// A directory's path and a name in it, at the end of a buffer.
pub(crate) fn append(path: &mut Vec<u8>, directory: &Path, name: &OsStr) {
    let directory = directory.as_os_str().as_bytes();
    path.extend_from_slice(directory);
    if directory.last().is_some_and(|&last| last != b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
}
