//! Attributes of files: stat(2) and its kin, owners, times and extended attributes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use holdfast::types::Errno;
use holdfast::{Access, FileTimes, OpenOptions, Permissions, XattrSet};

use super::Volume;
use crate::path::{self, PathArg};
use crate::stat::{attributes, nanoseconds, stat_result};
use crate::sys::Memory;

#[pymethods]
impl Volume {
    #[pyo3(signature = (path, *, follow_symlinks=true))]
    fn stat<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        follow_symlinks: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let metadata = self.run(py, &path, |fs, path| attributes(fs, path, follow_symlinks))?;
        stat_result(py, &metadata, self.open.device)
    }

    fn lstat<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.stat(py, path, false)
    }

    /// Nanoseconds since 1970 at which the file was made.
    fn birthtime_ns(&self, py: Python<'_>, path: PathArg<'_>) -> PyResult<i128> {
        let metadata = self.run(py, &path, |fs, path| fs.metadata(path))?;
        let time = metadata.attr().btime;
        Ok(nanoseconds((time.secs(), time.subsec_nanos().into())))
    }

    /// The mode of what a path leads to, or 0 if it leads to nothing.
    #[pyo3(signature = (path, *, follow_symlinks=true))]
    fn mode(&self, py: Python<'_>, path: PathArg<'_>, follow_symlinks: bool) -> PyResult<u32> {
        let (fs, place) = (self.open.fs(py)?, path.path());
        let found = py.detach(move || attributes(&fs, place, follow_symlinks));
        Ok(found.map_or(0, |metadata| metadata.mode()))
    }

    fn access(&self, py: Python<'_>, path: PathArg<'_>, mode: u8) -> PyResult<bool> {
        let want = Access::from_bits(mode)
            .ok_or_else(|| PyValueError::new_err("mode: a sum of os.R_OK, os.W_OK, os.X_OK"))?;
        let (fs, place) = (self.open.fs(py)?, path.path());
        Ok(py.detach(move || fs.access(place, want)).is_ok())
    }

    fn chmod(&self, py: Python<'_>, path: PathArg<'_>, mode: u32) -> PyResult<()> {
        let permissions = Permissions::from_mode(mode);
        self.run(py, &path, |fs, path| fs.set_permissions(path, permissions))
    }

    /// Changes owner and group; -1 leaves one as it is.
    #[pyo3(signature = (path, uid, gid, *, follow_symlinks=true))]
    fn chown(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        uid: i64,
        gid: i64,
        follow_symlinks: bool,
    ) -> PyResult<()> {
        let (uid, gid) = (identity(uid)?, identity(gid)?);
        self.run(py, &path, |fs, path| match follow_symlinks {
            true => fs.chown(path, uid, gid),
            false => fs.lchown(path, uid, gid),
        })
    }

    #[pyo3(signature = (path, times=None, *, ns=None, follow_symlinks=true))]
    fn utime(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        times: Option<(f64, f64)>,
        ns: Option<(i64, i64)>,
        follow_symlinks: bool,
    ) -> PyResult<()> {
        let times = match (times, ns) {
            (None, None) => FileTimes::now(),
            (Some((accessed, modified)), None) => FileTimes::new()
                .set_accessed(from_seconds(accessed)?)
                .set_modified(from_seconds(modified)?),
            (None, Some((accessed, modified))) => FileTimes::new()
                .set_accessed(from_nanoseconds(accessed))
                .set_modified(from_nanoseconds(modified)),
            (Some(_), Some(_)) => {
                let text = "utime: specify either times or ns, not both";
                return Err(PyValueError::new_err(text));
            }
        };
        self.run(py, &path, |fs, path| match follow_symlinks {
            true => fs.set_times(path, times),
            false => fs.set_times_nofollow(path, times),
        })
    }

    fn truncate(&self, py: Python<'_>, path: PathArg<'_>, length: u64) -> PyResult<()> {
        self.run(py, &path, |fs, path| {
            fs.open_with(path, OpenOptions::new().write(true))?
                .set_len(length)
        })
    }

    fn getxattr<'py>(
        &self,
        py: Python<'py>,
        path: PathArg<'py>,
        attribute: PathArg<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let name = attribute.path();
        let value = self.run(py, &path, |fs, path| {
            let value = fs.get_xattr(path, name)?;
            value.ok_or_else(|| Errno::ENODATA.into())
        })?;
        Ok(PyBytes::new(py, &value))
    }

    #[pyo3(signature = (path, attribute, value, flags=0))]
    fn setxattr(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        attribute: PathArg<'_>,
        value: &Bound<'_, PyAny>,
        flags: u8,
    ) -> PyResult<()> {
        let how = match flags {
            0 => XattrSet::Any,
            1 => XattrSet::Create,
            2 => XattrSet::Replace,
            _ => {
                let text = "flags: 0, os.XATTR_CREATE or os.XATTR_REPLACE";
                return Err(PyValueError::new_err(text));
            }
        };
        let value = Memory::of(value)?;
        let (name, value) = (attribute.path(), value.bytes());
        self.run(py, &path, |fs, path| fs.set_xattr(path, name, value, how))
    }

    fn listxattr<'py>(&self, py: Python<'py>, path: PathArg<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.run(py, &path, |fs, path| fs.list_xattr(path))?;
        let list = PyList::empty(py);
        for name in names {
            list.append(path::to_python(py, name.as_encoded_bytes(), false)?)?;
        }
        Ok(list)
    }

    fn removexattr(
        &self,
        py: Python<'_>,
        path: PathArg<'_>,
        attribute: PathArg<'_>,
    ) -> PyResult<()> {
        let name = attribute.path();
        self.run(py, &path, |fs, path| fs.remove_xattr(path, name))
    }
}

/// A user or group for chown; -1 is none.
fn identity(id: i64) -> PyResult<Option<u32>> {
    match id {
        -1 => Ok(None),
        _ => u32::try_from(id)
            .map(Some)
            .map_err(|_| PyValueError::new_err(format!("{id} is no user or group"))),
    }
}

fn from_seconds(seconds: f64) -> PyResult<SystemTime> {
    // Rounded towards the past, as Python does.
    let nanos = (seconds * 1e9).floor();
    if !nanos.is_finite() || nanos.abs() >= i64::MAX as f64 {
        return Err(PyValueError::new_err(format!("{seconds} is no time")));
    }
    Ok(from_nanoseconds(nanos as i64))
}

fn from_nanoseconds(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    match nanos < 0 {
        true => UNIX_EPOCH - distance,
        false => UNIX_EPOCH + distance,
    }
}
