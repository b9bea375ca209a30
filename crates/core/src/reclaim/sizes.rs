//! The sizes of names and of inode extensions that were loaded.
//!
//! Both are freed in batches, without a look at each. So those in memory are assumed to have the
//! mean size of all that were loaded.

use crate::inode::Inode;
use holdfast_sync::ShardedCounter;

/// The header of a name's allocation.
const HEAD: u64 = 24;
/// Allocators round sizes up to multiples of this.
const GRAIN: u64 = 16;
/// The slots of a name in the listing and in the table, with spare ones.
const PLACES: u64 = 32;

/// The number of objects, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    things: ShardedCounter,
    bytes: ShardedCounter,
}

impl Sizes {
    /// Counts `things` objects of `bytes` bytes together.
    #[inline]
    pub(crate) fn came(&self, things: usize, bytes: usize) {
        self.things.add(things as i64);
        if bytes > 0 {
            self.bytes.add(bytes as i64);
        }
    }

    /// The mean size; `None` without objects.
    pub(super) fn mean(&self) -> Option<u64> {
        let sum = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        sum(&self.bytes).checked_div(sum(&self.things))
    }
}

/// Memory of a name, with names of these sizes.
pub(super) fn bytes_per_name(names: &Sizes) -> u64 {
    names.mean().map_or(NAME_BYTES, |bytes| {
        (HEAD + bytes).next_multiple_of(GRAIN) + PLACES
    })
}

/// Memory of an inode without its slot in the index, and without rare parts.
pub(crate) const ALONE_BYTES: u64 = size_of::<Inode>() as u64;

/// The same with its slot, where numbers are dense.
pub(crate) const INODE_BYTES: u64 = ALONE_BYTES + 8;

/// About the memory of a usual name.
pub(crate) const NAME_BYTES: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_as_much_as_those_that_came() {
        let sizes = Sizes::default();
        assert_eq!(bytes_per_name(&sizes), NAME_BYTES);
        sizes.came(1000, 8000);
        assert_eq!(bytes_per_name(&sizes), 64);
        sizes.came(1000, 200_000);
        assert_eq!(bytes_per_name(&sizes), 160);
    }
}
