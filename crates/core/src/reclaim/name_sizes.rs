//! How large names are, of those that came into memory.

use holdfast_sync::ShardedCounter;

use super::NAME_BYTES;

/// What precedes a name's bytes in its own piece of memory.
const HEAD: u64 = 24;
/// Allocators hand out such pieces by so many bytes.
const GRAIN: u64 = 16;
/// What a name takes beside that: its places in the listing and in the table, with room for others.
const PLACES: u64 = 32;

/// Names that came, and their bytes.
///
/// Names go by whole directories, without a look at each: so what is in memory is taken to be as long as what came, on
/// the mean.
#[derive(Debug, Default)]
pub(crate) struct NameSizes {
    names: ShardedCounter,
    bytes: ShardedCounter,
}

impl NameSizes {
    /// So many names came, of so many bytes in all.
    #[inline]
    pub(crate) fn came(&self, names: usize, bytes: usize) {
        self.names.add(names as i64);
        self.bytes.add(bytes as i64);
    }

    /// What a name takes in memory, in bytes.
    pub(crate) fn mean(&self) -> u64 {
        let sum = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        match sum(&self.names) {
            0 => NAME_BYTES,
            names => (HEAD + sum(&self.bytes) / names).next_multiple_of(GRAIN) + PLACES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_as_much_as_those_that_came() {
        let sizes = NameSizes::default();
        assert_eq!(sizes.mean(), NAME_BYTES);
        sizes.came(1000, 8000);
        assert_eq!(sizes.mean(), 64);
        sizes.came(1000, 200_000);
        assert_eq!(sizes.mean(), 160);
    }
}
