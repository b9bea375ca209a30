//! Errors as Python raises them: subclasses of `OSError` with number and file names.

use std::io;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use holdfast::VolumeError;

/// `EIO`: an error without a number.
const EIO: i32 = 5;
/// `ESTALE`: the handle belongs to another process.
const ESTALE: i32 = 116;

/// An `OSError` of the subclass that belongs to the number, as builtin calls raise it.
pub(crate) fn os_error(
    py: Python<'_>,
    error: &io::Error,
    name: Option<&Bound<'_, PyAny>>,
    other: Option<&Bound<'_, PyAny>>,
) -> PyErr {
    match error.raw_os_error() {
        Some(errno) => numbered(py, errno, None, name, other),
        None => numbered(py, EIO, Some(error.to_string()), name, other),
    }
}

/// The error of a volume as a whole, with its reason.
pub(crate) fn volume_error(
    py: Python<'_>,
    error: &VolumeError,
    name: Option<&Bound<'_, PyAny>>,
) -> PyErr {
    let errno = error.raw_os_error().unwrap_or(EIO);
    numbered(py, errno, Some(error.to_string()), name, None)
}

fn numbered(
    py: Python<'_>,
    errno: i32,
    text: Option<String>,
    name: Option<&Bound<'_, PyAny>>,
    other: Option<&Bound<'_, PyAny>>,
) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let text = match text {
            Some(text) => text,
            None => strerror(py, errno)?,
        };
        let class = py.get_type::<PyOSError>();
        let error = match (name, other) {
            (None, _) => class.call1((errno, text))?,
            (Some(name), None) => class.call1((errno, text, name))?,
            (Some(name), Some(other)) => class.call1((errno, text, name, py.None(), other))?,
        };
        Ok(PyErr::from_value(error))
    };
    made().unwrap_or_else(|error| error)
}

/// The system's words for a number.
fn strerror(py: Python<'_>, errno: i32) -> PyResult<String> {
    static STRERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    STRERROR
        .import(py, "os", "strerror")?
        .call1((errno,))?
        .extract()
}

/// A handle was closed, or its volume.
pub(crate) fn closed(what: &str) -> PyErr {
    PyValueError::new_err(format!("I/O operation on a closed {what}"))
}

/// A handle of the parent process is used after fork(2).
pub(crate) fn forked(py: Python<'_>, pid: u32, address: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let text = format!(
        "{address} was opened by process {pid}, and this is a fork of it; open it again in this \
         process, or start it with multiprocessing's method \"spawn\" or \"forkserver\""
    );
    let made = CLASS
        .import(py, "holdfast._errors", "ForkError")
        .and_then(|class| class.call1((ESTALE, text)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
