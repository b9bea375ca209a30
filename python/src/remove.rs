//! `remove_tree`: a name and all below it goes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use holdfast::{ChangeEvent, ChangeOptions, FileSystem};

use crate::error::os_error;
use crate::many::advance;
use crate::open::Open;
use crate::path::{self, PathArg};

/// Names between two looks at signals.
const PIECE: u64 = 1024;

/// Why a removal stopped.
enum Failed {
    Name(PathBuf, io::Error),
    Python(PyErr),
}

/// Removes a name and all below it; returns the number of names. Unless failures are ignored, it
/// stops at the first.
pub(crate) fn remove_tree<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    top: &PathArg<'py>,
    ignore_errors: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<u64> {
    let (fs, place) = (open.fs(py)?, top.path());
    let progress = progress.map(|callback| callback.clone().unbind());
    let mut failure = None;
    let removed = py.detach(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let options = ChangeOptions {
            stop: Some(Arc::clone(&stop)),
        };
        let mut reported = 0;
        remove(&fs, place, &options, &mut |event| {
            let failed = match event {
                ChangeEvent::Failed(_) if ignore_errors => return,
                ChangeEvent::Failed(error) => {
                    let number = error.error.raw_os_error().unwrap_or_default();
                    Failed::Name(error.path.clone(), io::Error::from_raw_os_error(number))
                }
                ChangeEvent::Progress(counts) => {
                    let more = counts.names - reported;
                    if more < PIECE {
                        return;
                    }
                    reported = counts.names;
                    let called = Python::attach(|py| {
                        let callback = progress.as_ref().map(|callback| callback.bind(py));
                        advance(py, callback, more as usize)
                    });
                    match called {
                        Ok(()) => return,
                        Err(error) => Failed::Python(error),
                    }
                }
            };
            // The first counts; the removal ends with the next name.
            failure.get_or_insert(failed);
            stop.store(true, Ordering::Relaxed);
        })
    });
    let at = |path: &PathBuf, error: &io::Error| {
        let bytes = path.as_os_str().as_encoded_bytes();
        match path::to_python(py, bytes, top.is_bytes) {
            Ok(path) => os_error(py, error, Some(&path), None),
            Err(error) => error,
        }
    };
    match (failure, removed) {
        (Some(Failed::Name(path, error)), _) => Err(at(&path, &error)),
        (Some(Failed::Python(error)), _) => Err(error),
        (None, Ok(names)) => Ok(names),
        (None, Err(_)) if ignore_errors => Ok(0),
        (None, Err((path, error))) => Err(at(&path, &error)),
    }
}

fn remove(
    fs: &FileSystem,
    path: &Path,
    options: &ChangeOptions,
    watch: &mut dyn FnMut(ChangeEvent<'_>),
) -> Result<u64, (PathBuf, io::Error)> {
    match fs.remove_tree(path, options, watch) {
        Ok(removed) => Ok(removed.names),
        Err(error) => Err((error.path, error.error)),
    }
}
