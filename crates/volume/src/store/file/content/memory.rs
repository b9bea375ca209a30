//! What a file's changed content takes in memory.

use super::{Content, Form};

/// Inline bytes that count as one thing.
const INLINE: usize = 64;

impl Content {
    /// How many things there are that take memory, about; with few steps.
    pub(in crate::store) fn things(&self) -> usize {
        match &self.form {
            Form::Inline(bytes) => 1 + bytes.len() / INLINE,
            Form::Mapped { mapping, dirty } => 1 + mapping.len() + dirty.len(),
        }
    }

    /// Bytes of memory, but for pages that wait to be written. Goes over them.
    pub(in crate::store) fn memory(&self) -> usize {
        let form = match &self.form {
            Form::Inline(bytes) => bytes.capacity(),
            Form::Mapped { mapping, dirty } => mapping.memory() + dirty.memory(),
        };
        size_of::<Self>() + form
    }
}
