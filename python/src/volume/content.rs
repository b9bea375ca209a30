//! Content of files, and many files at once.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use holdfast::OpenOptions;

use super::Volume;
use crate::columns::Columns;
use crate::entry::DirEntry;
use crate::file::FileHandle;
use crate::many;
use crate::path::{self, PathArg};
use crate::tree;

#[pymethods]
impl Volume {
    /// Opens a file without buffers.
    #[pyo3(signature = (path, *, read=false, write=false, append=false, truncate=false,
                        create=false, exclusive=false, mode=0o666, flags=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn open_handle(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        read: bool,
        write: bool,
        append: bool,
        truncate: bool,
        create: bool,
        exclusive: bool,
        mode: u32,
        flags: i32,
    ) -> PyResult<FileHandle> {
        let mut options = OpenOptions::new();
        options.read(read).write(write).append(append);
        options.truncate(truncate).create(create);
        options.create_new(exclusive).mode(mode);
        options.custom_flags(flags);
        let file = self.run(py, &path, |fs, path| fs.open_with(path, &options))?;
        Ok(FileHandle::new(Arc::clone(&self.open), file))
    }

    #[pyo3(signature = (paths, *, errors="raise", threads=None, progress=None))]
    fn read_many<'py>(
        &self,
        paths: &Bound<'py, PyAny>,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::read::read_many(&self.open, paths, &how)
    }

    #[pyo3(signature = (ranges, *, errors="raise", threads=None, progress=None))]
    fn read_ranges<'py>(
        &self,
        ranges: &Bound<'py, PyAny>,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::read::read_ranges(&self.open, ranges, &how)
    }

    #[pyo3(signature = (items, *, makedirs=false, threads=None, progress=None))]
    fn write_many(
        &self,
        items: &Bound<'_, PyAny>,
        makedirs: bool,
        threads: Option<usize>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let how = many::How::new("raise", threads, progress)?;
        many::write::write_many(&self.open, items, makedirs, &how)
    }

    #[pyo3(signature = (paths, *, follow_symlinks=true, errors="raise", threads=None,
                        progress=None))]
    fn stat_many<'py>(
        &self,
        paths: &Bound<'py, PyAny>,
        follow_symlinks: bool,
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let how = many::How::new(errors, threads, progress)?;
        many::stat::stat_many(&self.open, paths, follow_symlinks, &how)
    }

    /// All entries below a directory, each directory before what it holds.
    #[pyo3(signature = (top=None, *, maxdepth=None, progress=None))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        top: Option<PathArg<'py>>,
        maxdepth: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<DirEntry>> {
        let top = path::root_if_none(py, top)?;
        tree::find(py, &self.open, &top, maxdepth, progress.as_ref())
    }

    /// All entries below a directory as columns.
    #[pyo3(signature = (top=None, *, maxdepth=None, paths="str", progress=None))]
    fn walk_columns<'py>(
        &self,
        py: Python<'py>,
        top: Option<PathArg<'py>>,
        maxdepth: Option<usize>,
        paths: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Columns> {
        let top = path::root_if_none(py, top)?;
        tree::columns(py, &self.open, &top, maxdepth, paths, progress.as_ref())
    }

    /// All inodes in the order of their numbers, as columns; with a path each if that is asked for.
    #[pyo3(signature = (*, paths=None, progress=None))]
    fn bulkstat(
        &self,
        py: Python<'_>,
        paths: Option<&str>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Columns> {
        crate::bulkstat::bulkstat(py, &self.open, paths, progress.as_ref())
    }
}
