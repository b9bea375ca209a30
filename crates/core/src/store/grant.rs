//! What a store grants an operation.

use crate::store::Space;

/// A grant of a store for one operation, in amounts that only the store interprets.
#[must_use = "what is held has to be used or given back"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Space for pages, unless the pages' own account counts it.
    pub pages: u64,
    /// Space for records of the store.
    pub records: u64,
    /// Space in the journal.
    pub journal: u64,
    /// Inodes.
    pub inodes: u64,
    /// Names and values, as [`kept`](super::Intent::kept) counts them.
    pub kept: u64,
}

impl Grant {
    /// Nothing.
    pub const NONE: Self = Self {
        pages: 0,
        records: 0,
        journal: 0,
        inodes: 0,
        kept: 0,
    };

    /// The inodes and bytes that count as used once the changes were made.
    #[must_use]
    pub const fn space(&self) -> Space {
        Space {
            pages: 0,
            inodes: self.inodes,
            bytes: self.kept,
        }
    }
}
