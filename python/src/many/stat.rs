//! `stat_many`.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::{How, Paths, Slots, in_pieces};
use crate::open::Open;
use crate::stat::attributes;
use crate::stat::stat_result;

/// The attributes of many paths as a list of `os.stat_result`.
pub(crate) fn stat_many<'py>(
    open: &Arc<Open>,
    paths: &Bound<'py, PyAny>,
    follow: bool,
    how: &How<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let py = paths.py();
    let paths = Paths::of(paths)?;
    let (fs, places) = (open.fs(py)?, &paths.places);
    let work = |range: Range<usize>| {
        range
            .map(|index| attributes(&fs, places.get(index), follow))
            .collect::<Vec<_>>()
    };
    let mut slots = Slots::new(paths.len());
    in_pieces(py, how, paths.len(), work, |range, piece| {
        for (index, found) in range.zip(piece) {
            let value = match found {
                Ok(metadata) => stat_result(py, &metadata, open.device)?,
                Err(error) => how.failed(py, &error, &paths.objects[index])?,
            };
            slots.put(index, value);
        }
        Ok(())
    })?;
    slots.finish(py)
}
