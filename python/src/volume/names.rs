//! Names of a volume: directories, links and their removal.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use holdfast::DirBuilder;

use super::Volume;
use crate::entry::Scan;
use crate::path::{self, PathArg};
use crate::remove;

#[pymethods]
impl Volume {
    #[pyo3(signature = (path=None))]
    fn scandir(&self, py: Python<'_>, path: Option<PathArg<'_>>) -> PyResult<Scan> {
        let path = path::root_if_none(py, path)?;
        let listing = self.run(py, &path, |fs, path| fs.read_dir(path))?;
        let open = Arc::clone(&self.open);
        Ok(Scan::new(open, listing, path.path().into(), path.is_bytes))
    }

    #[pyo3(signature = (path=None))]
    fn listdir<'py>(
        &self,
        py: Python<'py>,
        path: Option<PathArg<'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let path = path::root_if_none(py, path)?;
        let names = self.run(py, &path, |fs, path| {
            fs.read_dir(path)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<Vec<_>>>()
        })?;
        let list = PyList::empty(py);
        for name in names {
            list.append(path::to_python(py, name.as_encoded_bytes(), path.is_bytes)?)?;
        }
        Ok(list)
    }

    #[pyo3(signature = (path, mode=0o777))]
    fn mkdir(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            fs.create_dir_with(path, DirBuilder::new().mode(mode))
        })
    }

    #[pyo3(signature = (path, mode=0o777, exist_ok=false))]
    fn makedirs(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        mode: u32,
        exist_ok: bool,
    ) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            if !exist_ok {
                if let Some(above) = path.parent().filter(|above| *above != Path::new("")) {
                    fs.create_dir_all(above)?;
                }
                return fs.create_dir_with(path, DirBuilder::new().mode(mode));
            }
            fs.create_dir_with(path, DirBuilder::new().recursive(true).mode(mode))
        })
    }

    fn rename(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.rename(from, to))
    }

    fn replace(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.rename(py, src, dst)
    }

    fn link(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.hard_link(from, to))
    }

    fn symlink(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<()> {
        self.run_two(py, &src, &dst, |fs, target, link| fs.symlink(target, link))
    }

    /// Copies content and mode of a file; on a volume both share their blocks where possible.
    fn copyfile(&self, py: Python<'_>, src: PathArg<'_>, dst: PathArg<'_>) -> PyResult<u64> {
        self.run_two(py, &src, &dst, |fs, from, to| fs.copy(from, to))
    }

    fn readlink<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        let target = self.run(py, &path, |fs, path| fs.read_link(path))?;
        path::to_python(py, target.as_os_str().as_encoded_bytes(), path.is_bytes)
    }

    fn unlink(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.remove_file(path))
    }

    fn remove(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.unlink(py, path)
    }

    fn rmdir(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.remove_dir(path))
    }

    /// Removes a name and all below it; returns the number of names.
    #[pyo3(signature = (path, *, ignore_errors=false, progress=None))]
    fn remove_tree<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        ignore_errors: bool,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
        remove::remove_tree(py, &self.open, &path, ignore_errors, progress.as_ref())
    }

    #[pyo3(signature = (path, mode=0o666))]
    fn mkfifo(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        self.run(py, &path, |fs, path| fs.mkfifo(path, mode))
    }
}
