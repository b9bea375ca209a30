//! The Python module `holdfast._holdfast`: the native part of the package `holdfast`.
//!
//! It holds what needs Rust: handles, many files at once, columns. What is only Python is beside
//! it, in `python/holdfast`. The interpreter is released around every call that can wait. Long
//! calls look at signals between pieces.

mod bulkstat;
mod columns;
mod entry;
mod error;
mod file;
mod many;
mod open;
mod path;
mod remove;
mod rows;
mod stat;
mod sys;
mod tree;
mod volume;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The native part of the package `holdfast`.
#[pymodule(gil_used = false)]
mod _holdfast {
    #[pymodule_export]
    use super::columns::Columns;
    #[pymodule_export]
    use super::entry::{DirEntry, Scan};
    #[pymodule_export]
    use super::file::FileHandle;
    #[pymodule_export]
    use super::memory_usage;
    #[pymodule_export]
    use super::rows::{columns_of, stat_result};
    #[pymodule_export]
    use super::volume::Volume;
}

/// What the caches of this process's file systems may take and hold, in bytes.
#[pyfunction]
fn memory_usage(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let seen = py.detach(|| holdfast::engine::Memory::of_process().seen());
    let dict = PyDict::new(py);
    dict.set_item("limit", seen.limit)?;
    dict.set_item("used", seen.usage.total())?;
    Ok(dict)
}
