//! Attributes that the daemon of a mount sent: as `os.stat_result`, and as columns.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use holdfast::types::Attr;
use holdfast::{Metadata, row};

use crate::columns::{Columns, PathKind, Rows};
use crate::entry::append;
use crate::many::advance;
use crate::stat::stat_result as result_of;

/// The length of a path that is not known.
const UNKNOWN: u32 = u32::MAX;

fn malformed() -> PyErr {
    PyValueError::new_err("the daemon's answer is malformed; mount again with this version")
}

/// Attributes as `os.stat` answers them.
#[pyfunction]
pub(crate) fn stat_result<'py>(
    py: Python<'py>,
    row: &[u8],
    device: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let metadata = Metadata::from(row::get(row).ok_or_else(malformed)?);
    result_of(py, &metadata, device)
}

/// The records of a list, which come in chunks of any length: paths below `top`, and attributes.
/// `None` as `paths` leaves the paths out.
#[pyfunction]
#[pyo3(signature = (chunks, top, paths=None, progress=None))]
pub(crate) fn columns_of(
    py: Python<'_>,
    chunks: &Bound<'_, PyAny>,
    top: &[u8],
    paths: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Columns> {
    let top = Path::new(std::ffi::OsStr::from_bytes(top));
    let mut rows = Rows::new(paths.map(PathKind::of).transpose()?);
    let (mut rest, mut path) = (Vec::new(), Vec::new());
    for chunk in chunks.try_iter()? {
        rest.extend_from_slice(chunk?.cast::<PyBytes>()?.as_bytes());
        let (mut records, mut count) = (&rest[..], 0);
        while let Some((found, attr, behind)) = record(records)? {
            if let Some(found) = found {
                path.clear();
                append(&mut path, top, std::ffi::OsStr::from_bytes(found));
            }
            // An inode that could not be read has no links.
            let metadata = (attr.nlink > 0).then(|| attr.into());
            let shown = found.map(|_| &path[..]);
            rows.push(shown, attr.ino.0, attr.kind, metadata.as_ref())?;
            records = behind;
            count += 1;
        }
        let left = records.len();
        rest.drain(..rest.len() - left);
        advance(py, progress, count)?;
    }
    match rest.is_empty() {
        true => rows.finish(),
        false => Err(malformed()),
    }
}

/// The first record: its path if it has one, its attributes, and what follows. `None` if it is not
/// whole.
type Record<'r> = (Option<&'r [u8]>, Attr, &'r [u8]);

fn record(records: &[u8]) -> PyResult<Option<Record<'_>>> {
    let whole = || {
        let (len, rest) = records.split_first_chunk()?;
        let (row, rest) = rest.split_at_checked(row::ROW)?;
        match u32::from_le_bytes(*len) {
            UNKNOWN => Some((None, row, rest)),
            len => {
                let (path, rest) = rest.split_at_checked(len as usize)?;
                Some((Some(path), row, rest))
            }
        }
    };
    let Some((path, row, rest)) = whole() else {
        return Ok(None);
    };
    let attr = row::get(row).ok_or_else(malformed)?;
    Ok(Some((path, attr, rest)))
}
