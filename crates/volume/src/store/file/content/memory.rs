//! Memory accounting of a file's content.

use super::{Content, Form};

/// Inline bytes that count as one item.
const INLINE: usize = 64;

impl Content {
    /// The number of allocations, approximately; cheap.
    pub(in crate::store) fn things(&self) -> usize {
        match &self.form {
            Form::Inline(bytes) => 1 + bytes.len() / INLINE,
            Form::Mapped { mapping, dirty } => 1 + mapping.len() + dirty.len(),
        }
    }

    /// Bytes of memory, without dirty pages. Visits all items.
    pub(in crate::store) fn memory(&self) -> usize {
        let form = match &self.form {
            Form::Inline(bytes) => bytes.capacity(),
            Form::Mapped { mapping, dirty } => mapping.memory() + dirty.memory(),
        };
        size_of::<Self>() + form
    }
}
