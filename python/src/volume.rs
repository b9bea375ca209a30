//! The class `_holdfast.Volume`: the calls of `os` on one file system.

mod attributes;
mod content;
mod names;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use holdfast::{Caller, Caps, FileSystem, Options, VolumeBuilder, VolumeError};

use crate::error::{os_error, volume_error};
use crate::open::Open;
use crate::path::PathArg;

/// A file system on an image file or a block device, or in memory.
#[pyclass(subclass, frozen, module = "holdfast._holdfast")]
pub(crate) struct Volume {
    open: Arc<Open>,
}

/// How a volume is opened, as Python says it.
struct Opening {
    create: bool,
    read_only: bool,
    builder: VolumeBuilder,
}

impl Opening {
    fn at(self, path: &Path) -> Result<holdfast::Volume, VolumeError> {
        match (self.read_only, self.create) {
            (true, _) => self.builder.open_read_only(path),
            (false, true) => self.builder.open_or_create(path),
            (false, false) => self.builder.open(path),
        }
    }
}

/// The device number of the next file system in memory.
static MEMORIES: AtomicU64 = AtomicU64::new(1);

#[pymethods]
impl Volume {
    #[new]
    #[pyo3(signature = (path, *, create=false, read_only=false, size=None, inodes=None, label=None,
                        commit_every=None, memory=None, superuser=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        path: Option<PathArg<'_>>,
        create: bool,
        read_only: bool,
        size: Option<u64>,
        inodes: Option<u64>,
        label: Option<&str>,
        commit_every: Option<f64>,
        memory: Option<u64>,
        superuser: bool,
    ) -> PyResult<Self> {
        let mut caller = Caller::current();
        if superuser {
            caller.caps = Caps::all();
        }
        let options = Options {
            read_only,
            memory,
            ..Options::default()
        };
        let Some(path) = path else {
            let mut builder = FileSystem::builder().options(options).caller(caller);
            if let Some(size) = size {
                builder = builder.bytes_max(size);
            }
            if let Some(inodes) = inodes {
                builder = builder.inodes_max(inodes);
            }
            let device = MEMORIES.fetch_add(1, Ordering::Relaxed);
            let open = Open::new(builder.build(), None, "memory".to_owned(), device);
            let open = Arc::new(open);
            return Ok(Self { open });
        };
        if create && read_only {
            let text = "create=True and read_only=True exclude each other";
            return Err(PyValueError::new_err(text));
        }
        let address = path.path().display().to_string();
        let failed = |error: VolumeError| volume_error(py, &error, Some(&path.object));
        let mut builder = holdfast::Volume::builder().options(options).caller(caller);
        if let Some(size) = size {
            builder = builder.size(size);
        }
        if let Some(label) = label {
            builder = builder.label(label).map_err(failed)?;
        }
        if let Some(seconds) = commit_every {
            let interval = Duration::try_from_secs_f64(seconds)
                .map_err(|error| PyValueError::new_err(format!("commit_every: {error}")))?;
            builder = builder.commit_every(interval);
        }
        let opening = Opening {
            create,
            read_only,
            builder,
        };
        let place = path.path();
        let volume = py.detach(|| opening.at(place)).map_err(failed)?;
        let device = device_number(&volume.info().uuid);
        let fs = volume.file_system().clone();
        let open = Arc::new(Open::new(fs, Some(volume), address, device));
        Ok(Self { open })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open.close(py)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Does it belong to the parent of this process?
    #[getter]
    fn forked(&self) -> bool {
        self.open.is_foreign()
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let fs = self.open.fs(py)?;
        py.detach(move || fs.sync())
            .map_err(|error| os_error(py, &error, None, None))
    }

    fn statvfs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let fs = self.open.fs(py)?;
        let space = py
            .detach(move || fs.space())
            .map_err(|error| os_error(py, &error, None, None))?;
        let block = u64::from(space.block_size);
        let fields = [
            block,
            block,
            space.blocks,
            space.blocks_free,
            space.blocks_available,
            space.files,
            space.files_free,
            space.files_free,
            0,
            space.name_max.into(),
        ];
        let class = CLASS.import(py, "os", "statvfs_result")?;
        class.call1((PyTuple::new(py, fields)?,))
    }

    /// What is known of the volume; `None` for a file system in memory.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(info) = self.open.with_volume(py, |volume| Ok(volume.info()))? else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("uuid", info.uuid)?;
        dict.set_item("label", info.label)?;
        dict.set_item("size", info.size)?;
        dict.set_item("capacity", info.capacity)?;
        dict.set_item("free", info.free)?;
        dict.set_item("inodes", info.inodes)?;
        Ok(Some(dict))
    }

    /// Grows the volume to so many bytes; returns its size.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        let grown = self.open.with_volume(py, |volume| volume.grow(size))?;
        grown.ok_or_else(|| PyValueError::new_err("a file system in memory does not grow"))
    }
}

impl Volume {
    /// Calls `work` without the interpreter; an error names the path.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        path: &PathArg<'_>,
        work: impl FnOnce(&FileSystem, &Path) -> io::Result<R> + Send,
    ) -> PyResult<R> {
        let (fs, place) = (self.open.fs(py)?, path.path());
        py.detach(move || work(&fs, place))
            .map_err(|error| os_error(py, &error, Some(&path.object), None))
    }

    /// As [`Volume::run`], for two paths.
    fn run_two<R: Send>(
        &self,
        py: Python<'_>,
        from: &PathArg<'_>,
        to: &PathArg<'_>,
        work: impl FnOnce(&FileSystem, &Path, &Path) -> io::Result<R> + Send,
    ) -> PyResult<R> {
        let (fs, source, target) = (self.open.fs(py)?, from.path(), to.path());
        py.detach(move || work(&fs, source, target))
            .map_err(|error| os_error(py, &error, Some(&from.object), Some(&to.object)))
    }
}

/// The first half of a volume's identity, as `st_dev` shows it.
fn device_number(uuid: &str) -> u64 {
    let digits: String = uuid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    u64::from_str_radix(&digits, 16).unwrap_or_default()
}
