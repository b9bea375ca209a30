//! Memory of Python's objects as Rust slices.
//!
//! A buffer keeps its object's memory in place until it is dropped. Python code that changes the
//! content meanwhile, in another thread, is as wrong here as with `os.read` and `os.write`.

#![expect(
    unsafe_code,
    reason = "the buffer protocol hands out memory as pointers"
)]

use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// The memory of an object that has the buffer protocol, in one piece.
pub(crate) struct Memory(PyUntypedBuffer);

impl Memory {
    /// Takes the memory of `object`, and keeps it in place.
    ///
    /// # Errors
    /// `TypeError` without the buffer protocol; `BufferError` if the memory is not in one piece.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.is_c_contiguous() {
            Ok(Self(buffer))
        } else {
            let text = "the memory of the buffer is not in one piece; copy it into bytes first";
            Err(PyBufferError::new_err(text))
        }
    }

    /// The bytes, which can be read without the interpreter.
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.0.len_bytes();
        if len == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `len` bytes at this address valid and in place until the
        // buffer is released, which the drop of `self` does. See the module for changes meanwhile.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), len) }
    }

    /// The bytes, to be written to.
    ///
    /// # Errors
    /// `BufferError` if the memory is read-only.
    pub(crate) fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
        if self.0.readonly() {
            let text = "the buffer is read-only; use a bytearray or another writable one";
            return Err(PyBufferError::new_err(text));
        }
        let len = self.0.len_bytes();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `bytes`; the exporter permits writes, since it is not read-only.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), len) })
    }
}
