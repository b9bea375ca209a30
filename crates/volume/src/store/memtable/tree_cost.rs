//! The cost of changes to the trees, as counted by a memtable.

use std::ops::Add;

/// An upper bound of what changes cost the trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct TreeCost {
    /// Keys that change: in the worst case each in a full leaf of its own.
    pub(in crate::store) keys: u64,
    /// Bytes of new records.
    pub(in crate::store) bytes: u64,
}

impl Add for TreeCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            bytes: self.bytes + other.bytes,
        }
    }
}
