//! Attributes as `os.stat_result`.

use std::io;
use std::path::Path;

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use holdfast::{FileSystem, Metadata};

const NANOS: i128 = 1_000_000_000;

/// Attributes as `os.stat` answers them, for a file system with this device number.
pub(crate) fn stat_result<'py>(
    py: Python<'py>,
    metadata: &Metadata,
    device: u64,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let times = [
        (metadata.atime(), metadata.atime_nsec()),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    ];
    let mut fields = Vec::with_capacity(19);
    let numbers = [
        u64::from(metadata.mode()),
        metadata.ino(),
        device,
        metadata.nlink(),
        metadata.uid().into(),
        metadata.gid().into(),
        metadata.len(),
    ];
    for number in numbers {
        fields.push(number.into_bound_py_any(py)?);
    }
    for (secs, _) in times {
        fields.push(secs.into_bound_py_any(py)?);
    }
    for (secs, nanos) in times {
        fields.push((secs as f64 + nanos as f64 * 1e-9).into_bound_py_any(py)?);
    }
    for time in times {
        fields.push(nanoseconds(time).into_bound_py_any(py)?);
    }
    for number in [metadata.blksize(), metadata.blocks(), metadata.rdev()] {
        fields.push(number.into_bound_py_any(py)?);
    }
    let class = CLASS.import(py, "os", "stat_result")?;
    class.call1((PyTuple::new(py, fields)?,))
}

/// Nanoseconds since 1970 of seconds and nanoseconds.
pub(crate) fn nanoseconds((secs, nanos): (i64, i64)) -> i128 {
    i128::from(secs) * NANOS + i128::from(nanos)
}

/// The attributes of what a path leads to.
pub(crate) fn attributes(fs: &FileSystem, path: &Path, follow: bool) -> io::Result<Metadata> {
    match follow {
        true => fs.metadata(path),
        false => fs.symlink_metadata(path),
    }
}
