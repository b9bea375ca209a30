//! Many files in one call: in pieces, on several threads, with progress and signals between them.

pub(crate) mod read;
pub(crate) mod stat;
pub(crate) mod write;

use std::ffi::OsStr;
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, mem, sync, thread};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::error::os_error;
use crate::path::{self, PathArg};

/// Files that a thread does at once.
const PIECE: usize = 64;
/// Fewer pieces are done by the calling thread, since threads cost more than they bring.
const WORTH: usize = 8;
/// Threads at most, unless a caller asks for more.
const THREADS_MAX: usize = 8;

/// What the keywords of such a call say.
pub(crate) struct How<'py> {
    raise: bool,
    threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
}

impl<'py> How<'py> {
    pub(crate) fn new(
        errors: &str,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let raise = match errors {
            "raise" => true,
            "return" => false,
            _ => {
                let text = format!("errors: \"raise\" or \"return\", not {errors:?}");
                return Err(PyValueError::new_err(text));
            }
        };
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads: at least 1"));
        }
        Ok(Self {
            raise,
            threads,
            progress,
        })
    }

    /// An error of one file: raised, or returned in its place.
    fn failed(
        &self,
        py: Python<'py>,
        error: &io::Error,
        path: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = os_error(py, error, Some(path), None);
        match self.raise {
            true => Err(error),
            false => Ok(error.into_value(py).into_bound(py).into_any()),
        }
    }

    fn threads_for(&self, count: usize) -> usize {
        let pieces = count.div_ceil(PIECE);
        let threads = self.threads.unwrap_or_else(|| {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            match pieces < WORTH {
                true => 1,
                false => cores.min(THREADS_MAX),
            }
        });
        threads.min(pieces)
    }
}

/// Heeds signals, and tells the callback that so many more are done.
pub(crate) fn advance(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    done: usize,
) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        progress.call1((done,))?;
    }
    Ok(())
}

/// Does `count` items in pieces: `work` without the interpreter, on several threads, and `take`
/// with it on this one. After an error of `take` no new piece begins.
pub(crate) fn in_pieces<R: Send>(
    py: Python<'_>,
    how: &How<'_>,
    count: usize,
    work: impl Fn(Range<usize>) -> R + Sync,
    mut take: impl FnMut(Range<usize>, R) -> PyResult<()>,
) -> PyResult<()> {
    let next = AtomicUsize::new(0);
    let next_range = || {
        // Relaxed: the number carries nothing else.
        let start = next.fetch_add(PIECE, Ordering::Relaxed);
        (start < count).then(|| start..count.min(start + PIECE))
    };
    let mut take = |range: Range<usize>, done: R| {
        let len = range.len();
        take(range, done)?;
        advance(py, how.progress.as_ref(), len)
    };
    let threads = how.threads_for(count);
    let mut started = 0;
    if threads > 1 {
        let (send, mut receive) = sync::mpsc::sync_channel(2 * threads);
        thread::scope(|scope| {
            for _ in 0..threads {
                let (send, next_range, work) = (send.clone(), &next_range, &work);
                let run = move || {
                    while let Some(range) = next_range() {
                        let done = work(range.clone());
                        if send.send((range, done)).is_err() {
                            break;
                        }
                    }
                };
                let thread = thread::Builder::new().name("holdfast-many".to_owned());
                // Fewer threads than wanted do the same work.
                started += usize::from(thread.spawn_scoped(scope, run).is_ok());
            }
            drop(send);
            let mut taken = Ok(());
            while taken.is_ok() {
                let receiver = &mut receive;
                match py.detach(move || receiver.recv()) {
                    Ok((range, done)) => taken = take(range, done),
                    Err(_) => break,
                }
            }
            // Threads that still have results can send them no more, and end.
            drop(receive);
            taken
        })?;
    }
    if started == 0 {
        while let Some(range) = next_range() {
            let piece = range.clone();
            let done = py.detach(|| work(piece));
            take(range, done)?;
        }
    }
    Ok(())
}

/// A list of paths.
pub(crate) struct Paths<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    places: Places,
}

/// The same paths as bytes, for threads without the interpreter.
#[derive(Default)]
pub(crate) struct Places {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Places {
    pub(crate) fn get(&self, index: usize) -> &Path {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.lengths[before]);
        let bytes = &self.bytes[start..self.lengths[index]];
        Path::new(OsStr::from_bytes(bytes))
    }
}

impl<'py> Paths<'py> {
    pub(crate) fn new() -> Self {
        Self {
            objects: Vec::new(),
            places: Places::default(),
        }
    }

    /// Takes all paths of an iterable.
    ///
    /// # Errors
    /// `TypeError` for a single path, which would be taken for its letters.
    pub(crate) fn of(paths: &Bound<'py, PyAny>) -> PyResult<Self> {
        if paths.is_instance_of::<PyString>() || paths.is_instance_of::<PyBytes>() {
            let text = "paths: a list or another iterable of paths, not a single one";
            return Err(PyTypeError::new_err(text));
        }
        let mut all = Self::new();
        for path in paths.try_iter()? {
            all.push(path?)?;
        }
        Ok(all)
    }

    pub(crate) fn push(&mut self, path: Bound<'py, PyAny>) -> PyResult<()> {
        let bytes = &mut self.places.bytes;
        if path.is_instance_of::<PyString>() || path.is_instance_of::<PyBytes>() {
            path::append(&path, bytes)?;
            self.objects.push(path);
        } else {
            let path: PathArg<'py> = path.extract()?;
            bytes.extend_from_slice(path.bytes());
            self.objects.push(path.object);
        }
        self.places.lengths.push(bytes.len());
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }
}

/// The items of a tuple that stands for one file.
fn pair_of<'py>(item: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyTuple>> {
    item.cast::<PyTuple>()
        .cloned()
        .map_err(|_| PyTypeError::new_err(format!("each item: a tuple {what}")))
}

/// A list in which results are put by number, in any order.
struct Slots<'py>(Vec<Option<Bound<'py, PyAny>>>);

impl<'py> Slots<'py> {
    fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    fn put(&mut self, index: usize, value: Bound<'py, PyAny>) {
        self.0[index] = Some(value);
    }

    /// All of them; every one was put.
    fn finish(&mut self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
        pyo3::types::PyList::new(py, mem::take(&mut self.0))
    }
}
