//! Whole trees: all entries below a directory, as objects or as columns.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use pyo3::prelude::*;

use holdfast::{TreeEntry, TreeWalk};

use crate::columns::{Columns, PathKind, Rows};
use crate::entry::{DirEntry, append};
use crate::error::os_error;
use crate::many::advance;
use crate::open::Open;
use crate::path::{self, PathArg};

/// Entries between two looks at signals.
const PIECE: usize = 4096;

/// Walks the tree below `top`; `visit` is called without the interpreter.
fn walk<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    mut visit: impl FnMut(TreeEntry<'_>) + Send,
) -> PyResult<()> {
    let fs = open.fs(py)?;
    let (start, as_bytes) = (top.path(), top.is_bytes);
    if maxdepth == Some(0) {
        return Ok(());
    }
    let begun = py.detach(move || TreeWalk::new(fs, start, maxdepth));
    let mut walk = begun.map_err(|error| os_error(py, &error, Some(&top.object), None))?;
    loop {
        let shown = py.detach(|| walk.next(PIECE, &mut visit));
        let shown = shown.map_err(|(path, error)| {
            match path::to_python(py, path.as_os_str().as_bytes(), as_bytes) {
                Ok(path) => os_error(py, &error, Some(&path), None),
                Err(error) => error,
            }
        })?;
        if shown == 0 {
            return Ok(());
        }
        advance(py, progress, shown)?;
    }
}

/// All entries below `top` as objects.
pub(crate) fn find<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<DirEntry>> {
    let (mut all, is_bytes) = (Vec::new(), top.is_bytes);
    walk(py, open, top, maxdepth, progress, |found| {
        all.push(DirEntry::new(open, found, is_bytes));
    })?;
    Ok(all)
}

/// All entries below `top` as columns.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    maxdepth: Option<usize>,
    paths: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Columns> {
    let mut rows = Rows::new(Some(PathKind::of(paths)?));
    let (mut path, mut pushed) = (Vec::new(), Ok(()));
    walk(py, open, top, maxdepth, progress, |found| {
        if pushed.is_ok() {
            path.clear();
            append(&mut path, found.directory, found.name);
            let metadata = found.metadata.as_ref().ok();
            pushed = rows.push(Some(&path), found.ino, found.kind, metadata);
        }
    })?;
    pushed?;
    rows.finish()
}
