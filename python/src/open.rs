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
    /// Acts for the caller. `None` when closed.
    fs: Mutex<Option<FileSystem>>,
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
            fs: Mutex::new(Some(fs)),
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

    /// The file system. A call that is under way when it is closed keeps it alive.
    ///
    /// # Errors
    /// `ForkError` in a child of the process, `ValueError` once it is closed.
    pub(crate) fn fs(&self, py: Python<'_>) -> PyResult<FileSystem> {
        self.check_process(py)?;
        let fs = lock(&self.fs).clone();
        fs.ok_or_else(|| closed("volume"))
    }

    /// Refuses to work in a child of the process, and once it is closed.
    ///
    /// # Errors
    /// As [`Open::fs`].
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py)?;
        match self.is_closed() {
            true => Err(closed("volume")),
            false => Ok(()),
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
        let ended = py.detach(|| {
            // Each is dropped without its lock, on which others wait with the interpreter.
            let fs = lock(&self.fs).take();
            drop(fs);
            let volume = lock(&self.volume).take();
            volume.map_or(Ok(()), Volume::close)
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
        self.check(py)?;
        let done = py.detach(|| lock(&self.volume).as_ref().map(work).transpose());
        done.map_err(|error| volume_error(py, &error, None))
    }
}

/// Locks a slot. A panic of another holder leaves its content in place.
pub(crate) fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_foreign() {
            // No thread of this process holds or will hold the locks: the fields are abandoned.
            let slots = (mem::take(&mut self.fs), mem::take(&mut self.volume));
            mem::forget(slots);
            return;
        }
        let (fs, volume) = (lock(&self.fs).take(), lock(&self.volume).take());
        without_interpreter(fs);
        // A drop cannot raise an error, but Python can report it. Without an interpreter, the drop
        // of the closure drops the volume, which closes it too.
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
