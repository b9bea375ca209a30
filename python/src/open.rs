//! An open volume, or a file system in memory, as all handles on it share it.
//!
//! *Invariant.* Only the process that opened it uses it. After fork(2) the child has a copy of the
//! memory, but none of the volume's threads, and locks may be held for ever. So every use compares
//! the process first, and in a child even the drop leaves everything as it is.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use holdfast::{FileSystem, Volume, VolumeError};

use crate::error::{closed, forked, volume_error};

/// What all handles share.
pub(crate) struct Open {
    /// The process that opened it.
    pid: u32,
    /// What messages call it.
    pub(crate) address: String,
    /// As `st_dev` shows it.
    pub(crate) device: u64,
    /// Acts for the caller. `None` only while it is dropped.
    fs: Option<FileSystem>,
    /// The volume below, until it is closed; `None` for a file system in memory.
    volume: Mutex<Option<Volume>>,
    closed: AtomicBool,
}

impl Open {
    pub(crate) fn new(
        fs: FileSystem,
        volume: Option<Volume>,
        address: String,
        device: u64,
    ) -> Self {
        Self {
            pid: std::process::id(),
            address,
            device,
            fs: Some(fs),
            volume: Mutex::new(volume),
            closed: AtomicBool::new(false),
        }
    }

    /// Was it opened by the parent of this process?
    pub(crate) fn is_foreign(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Refuses to work in a child of the process.
    ///
    /// # Errors
    /// `ForkError`.
    pub(crate) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        match self.is_foreign() {
            true => Err(forked(py, self.pid, &self.address)),
            false => Ok(()),
        }
    }

    /// The file system.
    ///
    /// # Errors
    /// `ForkError` in a child of the process, `ValueError` once it is closed.
    pub(crate) fn fs(&self, py: Python<'_>) -> PyResult<&FileSystem> {
        self.check_process(py)?;
        match &self.fs {
            Some(fs) if !self.is_closed() => Ok(fs),
            _ => Err(closed("volume")),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes the volume: all handles fail from now on. Does nothing in a child of the process, and
    /// when it is closed already.
    ///
    /// # Errors
    /// `OSError` if changes could not be made durable.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_foreign() || self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let ended = py.detach(|| match self.volume().take() {
            Some(volume) => volume.close(),
            None => Ok(()),
        });
        ended.map_err(|error| volume_error(py, &error, None))
    }

    /// Calls `work` with the volume, without the interpreter; `None` for a file system in memory.
    ///
    /// # Errors
    /// As [`Open::fs`]; those of `work`.
    pub(crate) fn with_volume<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Volume) -> Result<R, VolumeError> + Send,
    ) -> PyResult<Option<R>> {
        self.fs(py)?;
        let done = py.detach(|| self.volume().as_ref().map(work).transpose());
        done.map_err(|error| volume_error(py, &error, None))
    }

    fn volume(&self) -> MutexGuard<'_, Option<Volume>> {
        // A panic of another holder leaves the volume in its place.
        self.volume.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let slot = self.volume.get_mut();
        let volume = slot.unwrap_or_else(PoisonError::into_inner).take();
        let fs = self.fs.take();
        if self.is_foreign() {
            mem::forget((fs, volume));
            return;
        }
        without_interpreter(fs);
        // A drop cannot raise an error, but Python can report it. Without an interpreter, the drop of
        // the closure drops the volume, which closes it too.
        let _ = Python::try_attach(|py| {
            if let Some(Err(error)) = py.detach(|| volume.map(Volume::close)) {
                volume_error(py, &error, None).write_unraisable(py, None);
            }
        });
    }
}

/// Drops what may take its time, without the interpreter where this thread has it.
pub(crate) fn without_interpreter<T: Send>(value: T) {
    let mut value = Some(value);
    let mut end = || drop(value.take());
    if Python::try_attach(|py| py.detach(&mut end)).is_none() {
        end();
    }
}
