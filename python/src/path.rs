//! Paths and names: `str`, `bytes` or `os.PathLike` from Python, bytes inside.
//!
//! Text is UTF-8; a byte that is not becomes a lone surrogate and back (`surrogateescape`),
//! whatever the locale says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use pyo3::Borrowed;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

/// A path that a caller passed.
pub(crate) struct PathArg<'py> {
    /// As the caller wrote it, for the names in errors.
    pub(crate) object: Bound<'py, PyAny>,
    bytes: Vec<u8>,
    /// Did the caller write bytes, and gets bytes back?
    pub(crate) is_bytes: bool,
}

impl PathArg<'_> {
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<'py> FromPyObject<'_, 'py> for PathArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        static FSPATH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = object.py();
        let mut object = object.to_owned();
        if !object.is_instance_of::<PyString>() && !object.is_instance_of::<PyBytes>() {
            object = FSPATH.import(py, "os", "fspath")?.call1((object,))?;
        }
        let mut bytes = Vec::new();
        let is_bytes = append(&object, &mut bytes)?;
        Ok(Self {
            object,
            bytes,
            is_bytes,
        })
    }
}

/// Appends the bytes of a `str` or `bytes`; returns whether it is `bytes`.
///
/// # Errors
/// `TypeError` for other types; `UnicodeEncodeError` for surrogates that are no escaped bytes.
pub(crate) fn append(object: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> PyResult<bool> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        to.extend_from_slice(bytes.as_bytes());
        return Ok(true);
    }
    let text = object.cast::<PyString>()?;
    match text.to_str() {
        Ok(utf8) => to.extend_from_slice(utf8.as_bytes()),
        Err(_) => {
            let py = object.py();
            let how = ("utf-8", intern!(py, "surrogateescape"));
            let encoded = text.call_method1(intern!(py, "encode"), how)?;
            to.extend_from_slice(encoded.cast::<PyBytes>()?.as_bytes());
        }
    }
    Ok(false)
}

/// A path or name for Python: bytes for callers that passed bytes, else text.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    bytes: &[u8],
    as_bytes: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if as_bytes {
        return Ok(PyBytes::new(py, bytes).into_any());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => {
            let how = ("utf-8", intern!(py, "surrogateescape"));
            PyBytes::new(py, bytes).call_method1(intern!(py, "decode"), how)
        }
    }
}

/// The root for a path that was left out.
pub(crate) fn root_if_none<'py>(
    py: Python<'py>,
    path: Option<PathArg<'py>>,
) -> PyResult<PathArg<'py>> {
    match path {
        Some(path) => Ok(path),
        None => to_python(py, b"/", false)?.extract(),
    }
}
