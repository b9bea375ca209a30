//! The class `_holdfast.FileHandle`: an open file, over which Python's `File` lies.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use holdfast::File;

use crate::error::{closed, os_error};
use crate::open::{Open, lock, without_interpreter};
use crate::stat::stat_result;
use crate::sys::Memory;

/// An open file. It keeps its volume open.
#[pyclass(frozen, module = "holdfast._holdfast")]
pub(crate) struct FileHandle {
    open: Arc<Open>,
    /// `None` when closed.
    file: Mutex<Option<File>>,
}

impl FileHandle {
    pub(crate) fn new(open: Arc<Open>, file: File) -> Self {
        Self {
            open,
            file: Mutex::new(Some(file)),
        }
    }

    /// Calls `work` without the interpreter.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(File) -> io::Result<R> + Send,
    ) -> PyResult<R> {
        self.open.check(py)?;
        let file = lock(&self.file).as_ref().map(File::try_clone);
        let file = file.ok_or_else(|| closed("file"))?;
        py.detach(|| work(file?))
            .map_err(|error| os_error(py, &error, None, None))
    }
}

#[pymethods]
impl FileHandle {
    /// Reads into a writable buffer, at an offset or at the file's own; returns the bytes read.
    #[pyo3(signature = (buffer, offset=None))]
    fn readinto(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: Option<u64>,
    ) -> PyResult<usize> {
        let mut memory = Memory::of(buffer)?;
        let bytes = memory.bytes_mut()?;
        self.run(py, |mut file| match offset {
            Some(offset) => file.read_at(bytes, offset),
            None => file.read(bytes),
        })
    }

    /// Writes a buffer, at an offset or at the file's own; returns the bytes written.
    #[pyo3(signature = (buffer, offset=None))]
    fn write(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: Option<u64>,
    ) -> PyResult<usize> {
        let memory = Memory::of(buffer)?;
        let bytes = memory.bytes();
        self.run(py, |mut file| match offset {
            Some(offset) => file.write_at(bytes, offset),
            None => file.write(bytes),
        })
    }

    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        let to =
            match whence {
                0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| {
                    PyValueError::new_err(format!("negative seek position {offset}"))
                })?),
                1 => SeekFrom::Current(offset),
                2 => SeekFrom::End(offset),
                _ => {
                    let text = format!("invalid whence ({whence}, should be 0, 1 or 2)");
                    return Err(PyValueError::new_err(text));
                }
            };
        self.run(py, |mut file| file.seek(to))
    }

    fn truncate(&self, py: Python<'_>, length: u64) -> PyResult<()> {
        self.run(py, |file| file.set_len(length))
    }

    #[pyo3(signature = (*, data_only=false))]
    fn sync(&self, py: Python<'_>, data_only: bool) -> PyResult<()> {
        self.run(py, |file| match data_only {
            true => file.sync_data(),
            false => file.sync_all(),
        })
    }

    fn stat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let metadata = self.run(py, |file| file.metadata())?;
        stat_result(py, &metadata, self.open.device)
    }

    /// Closes the file. Does nothing in a child of the process that opened it.
    fn close(&self, py: Python<'_>) {
        if !self.open.is_foreign() {
            let file = lock(&self.file).take();
            py.detach(|| drop(file));
        }
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        let slot = mem::take(&mut self.file);
        if self.open.is_foreign() {
            mem::forget(slot);
        } else if lock(&slot).is_some() {
            without_interpreter(slot);
        }
    }
}
