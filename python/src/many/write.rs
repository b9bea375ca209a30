//! `write_many`.

use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyMapping;

use holdfast::FileSystem;

use super::{How, Paths, in_pieces, pair_of};
use crate::error::os_error;
use crate::open::Open;
use crate::sys::Memory;

/// Makes or replaces many files, given as a mapping of paths to contents or as pairs; returns the
/// bytes written. If one fails, others may have been written.
pub(crate) fn write_many(
    open: &Arc<Open>,
    items: &Bound<'_, PyAny>,
    makedirs: bool,
    how: &How<'_>,
) -> PyResult<u64> {
    let py = items.py();
    let pairs = match items.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => items.clone(),
    };
    let (mut paths, mut contents) = (Paths::new(), Vec::new());
    for pair in pairs.try_iter()? {
        let (path, content): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            pair_of(&pair?, "(path, content)")?.extract()?;
        paths.push(path)?;
        contents.push(Memory::of(&content)?);
    }
    let slices: Vec<&[u8]> = contents.iter().map(Memory::bytes).collect();
    let (fs, places) = (open.fs(py)?, &paths.places);
    let work = |range: Range<usize>| {
        let mut written = 0;
        for index in range {
            let content = slices[index];
            if let Err(error) = write(&fs, places.get(index), content, makedirs) {
                return Err((index, error));
            }
            written += content.len() as u64;
        }
        Ok(written)
    };
    let mut written = 0;
    in_pieces(py, how, paths.len(), work, |_, piece| {
        written += piece
            .map_err(|(index, error)| os_error(py, &error, Some(&paths.objects[index]), None))?;
        Ok(())
    })?;
    Ok(written)
}

fn write(fs: &FileSystem, path: &Path, content: &[u8], makedirs: bool) -> io::Result<()> {
    let mut file = match (fs.create(path), path.parent()) {
        (Err(error), Some(above)) if makedirs && error.kind() == io::ErrorKind::NotFound => {
            fs.create_dir_all(above)?;
            fs.create(path)?
        }
        (made, _) => made?,
    };
    file.write_all(content)
}
