//! `bulkstat`: all inodes in the order of their numbers.

use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use pyo3::exceptions::PyPermissionError;
use pyo3::prelude::*;

use holdfast::engine::Bulkstat;
use holdfast::{Caps, FileSystem, Metadata, TreeEntry, TreeWalk, Visit};

use crate::columns::{Columns, PathKind, Rows};
use crate::error::os_error;
use crate::many::advance;
use crate::open::Open;

/// Inodes between two looks at signals.
const PIECE: usize = 4096;
const EPERM: i32 = 1;

/// All inodes as columns. With paths, each has the first of its names that a walk meets, and an
/// inode without a name has none.
pub(crate) fn bulkstat(
    py: Python<'_>,
    open: &Arc<Open>,
    paths: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Columns> {
    let fs = open.fs(py)?;
    if !fs.caller().has(Caps::SYS_ADMIN) {
        let text = "bulkstat shows inodes of all users; open with superuser=True";
        return Err(PyPermissionError::new_err((EPERM, text)));
    }
    let kind = paths.map(PathKind::of).transpose()?;
    let failed = |error: io::Error| os_error(py, &error, None, None);
    let names = match kind {
        Some(_) => names(py, &fs)?,
        None => HashMap::new(),
    };
    let mut rows = Rows::new(kind);
    let mut scan = Bulkstat::new().with_batch(PIECE);
    while !scan.is_done() {
        let found = py.detach(|| {
            let mut found: Vec<Metadata> = Vec::with_capacity(PIECE);
            fs.core().bulkstat(&mut scan, |_, attr| {
                found.push((*attr).into());
                Ok(match found.len() < PIECE {
                    true => Visit::Continue,
                    false => Visit::Stop,
                })
            })?;
            Ok(found)
        });
        let found = found.map_err(failed)?;
        for metadata in &found {
            let path = names.get(&metadata.ino()).map(Vec::as_slice);
            let kind = metadata.file_type().kind();
            rows.push(path, metadata.ino(), kind, Some(metadata))?;
        }
        advance(py, progress, found.len())?;
    }
    rows.finish()
}

/// The first path of each inode.
fn names(py: Python<'_>, fs: &FileSystem) -> PyResult<HashMap<u64, Vec<u8>>> {
    let failed = |error: io::Error| os_error(py, &error, None, None);
    let root = py.detach(|| fs.metadata("/")).map_err(failed)?;
    let mut names = HashMap::from([(root.ino(), b"/".to_vec())]);
    let begun = py.detach(|| TreeWalk::new(fs.clone(), "/", None));
    let mut walk = begun.map_err(failed)?;
    loop {
        let mut visit = |found: TreeEntry<'_>| {
            let path = || found.directory.join(found.name).into_os_string().into_vec();
            names.entry(found.ino).or_insert_with(path);
        };
        let shown = py.detach(|| walk.next(PIECE, &mut visit));
        if shown.map_err(|(_, error)| failed(error))? == 0 {
            return Ok(names);
        }
        py.check_signals()?;
    }
}
