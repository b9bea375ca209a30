//! How much changes bring to the trees, as far as a memtable counts it.

use std::ops::Add;

/// Changes of the trees, at most so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Growth {
    /// Keys that change: in the worst case each lies in a leaf of its own, which was full.
    pub(in crate::store) keys: u64,
    /// Bytes of records that come.
    pub(in crate::store) bytes: u64,
}

impl Add for Growth {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            bytes: self.bytes + other.bytes,
        }
    }
}
