//! `read_many` and `read_ranges`.
//!
//! Small contents are read into one buffer a piece, and copied from there into Python's objects:
//! that is cheaper than one object at a time without the interpreter. Large ones are read into
//! their objects.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use holdfast::{File, FileSystem};

use super::{How, Paths, Slots, in_pieces, pair_of};
use crate::open::Open;

/// Longer contents are read into their objects.
const SMALL: u64 = 256 << 10;

/// A part of a content as Python's slices name it.
#[derive(Clone, Copy, Default)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
}

impl Slice {
    /// The part of a content of this length.
    fn within(self, len: u64) -> Range<u64> {
        let at = |place: i64| match u64::try_from(place) {
            Ok(place) => place.min(len),
            Err(_) => len.saturating_sub(place.unsigned_abs()),
        };
        let start = self.start.map_or(0, at);
        start..self.end.map_or(len, at).max(start)
    }
}

/// What came of one file.
enum Content {
    /// A part of the piece's buffer.
    Small(Range<usize>),
    Large(File, Range<u64>),
    Failed(io::Error),
}

/// The contents of some files.
struct Piece {
    buffer: Vec<u8>,
    contents: Vec<Content>,
}

/// The contents of files as a list of `bytes`.
pub(crate) fn read_many<'py>(
    open: &Arc<Open>,
    paths: &Bound<'py, PyAny>,
    how: &How<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let py = paths.py();
    let paths = Paths::of(paths)?;
    read_slices(py, open, &paths, &|_| Slice::default(), how)
}

/// Parts of files, given as tuples of path, start and end.
pub(crate) fn read_ranges<'py>(
    open: &Arc<Open>,
    ranges: &Bound<'py, PyAny>,
    how: &How<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let (mut paths, mut slices) = (Paths::new(), Vec::new());
    for item in ranges.try_iter()? {
        let (path, start, end) = pair_of(&item?, "(path, start, end)")?.extract()?;
        paths.push(path)?;
        slices.push(Slice { start, end });
    }
    read_slices(ranges.py(), open, &paths, &|index| slices[index], how)
}

fn read_slices<'py>(
    py: Python<'py>,
    open: &Arc<Open>,
    paths: &Paths<'py>,
    slice: &(impl Fn(usize) -> Slice + Sync),
    how: &How<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let (fs, places) = (open.fs(py)?, &paths.places);
    // A piece is likely to be as long as the longest before it. Relaxed: it is a hint.
    let longest = AtomicUsize::new(0);
    let work = |range: Range<usize>| {
        let mut buffer = Vec::with_capacity(longest.load(Ordering::Relaxed));
        let contents = range
            .map(|index| {
                read(&fs, places.get(index), slice(index), &mut buffer)
                    .unwrap_or_else(Content::Failed)
            })
            .collect();
        longest.fetch_max(buffer.len(), Ordering::Relaxed);
        Piece { buffer, contents }
    };
    let mut slots = Slots::new(paths.len());
    in_pieces(py, how, paths.len(), work, |range, piece| {
        for (index, content) in range.zip(piece.contents) {
            let path = &paths.objects[index];
            let value = match content {
                Content::Small(part) => PyBytes::new(py, &piece.buffer[part]).into_any(),
                Content::Large(file, part) => match read_large(py, &file, part) {
                    Ok(bytes) => bytes.into_any(),
                    Err(LargeError::Io(error)) => how.failed(py, &error, path)?,
                    Err(LargeError::Python(error)) => return Err(error),
                },
                Content::Failed(error) => how.failed(py, &error, path)?,
            };
            slots.put(index, value);
        }
        Ok(())
    })?;
    slots.finish(py)
}

/// Reads a small content, or opens a large one.
fn read(fs: &FileSystem, path: &Path, slice: Slice, buffer: &mut Vec<u8>) -> io::Result<Content> {
    let file = fs.open(path)?;
    let part = slice.within(file.metadata()?.len());
    let len = part.end - part.start;
    if len > SMALL {
        return Ok(Content::Large(file, part));
    }
    let start = buffer.len();
    buffer.resize(start + len as usize, 0);
    let read = file.read_at(&mut buffer[start..], part.start)?;
    buffer.truncate(start + read);
    if len == 0 {
        // A directory has no content to read, which only a read tells.
        file.read_at(&mut [0], 0)?;
    }
    Ok(Content::Small(start..buffer.len()))
}

/// Why a large content cannot be had.
enum LargeError {
    Io(io::Error),
    Python(PyErr),
}

/// Reads a content into its object. It is shorter if the file was cut meanwhile.
fn read_large<'py>(
    py: Python<'py>,
    file: &File,
    part: Range<u64>,
) -> Result<Bound<'py, PyBytes>, LargeError> {
    let len = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
    let mut read = Ok(0);
    let bytes = PyBytes::new_with(py, len, |buffer| {
        read = py.detach(|| file.read_at(buffer, part.start));
        Ok(())
    });
    let bytes = bytes.map_err(LargeError::Python)?;
    match read.map_err(LargeError::Io)? {
        read if read == len => Ok(bytes),
        read => Ok(PyBytes::new(py, &bytes.as_bytes()[..read])),
    }
}
