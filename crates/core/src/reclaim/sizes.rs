//! How large names are, and what inodes have beside themselves, of those that came into memory.
//!
//! Both go many at a time, without a look at each: so what is in memory is taken to be as large as what came, on the mean.

use holdfast_sync::ShardedCounter;

use super::NAME_BYTES;

/// What precedes a name's bytes in its own piece of memory.
const HEAD: u64 = 24;
/// Allocators hand out such pieces by so many bytes.
const GRAIN: u64 = 16;
/// What a name takes beside that: its places in the listing and in the table, with room for others.
const PLACES: u64 = 32;

/// Things that came, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    things: ShardedCounter,
    bytes: ShardedCounter,
}

impl Sizes {
    /// So many came, of so many bytes in all.
    #[inline]
    pub(crate) fn came(&self, things: usize, bytes: usize) {
        self.things.add(things as i64);
        if bytes > 0 {
            self.bytes.add(bytes as i64);
        }
    }

    /// Bytes of one; none if none came.
    pub(super) fn mean(&self) -> Option<u64> {
        let sum = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        sum(&self.bytes).checked_div(sum(&self.things))
    }
}

/// What a name takes in memory, in bytes, where names have so many.
pub(super) fn name_bytes(names: &Sizes) -> u64 {
    names.mean().map_or(NAME_BYTES, |bytes| {
        (HEAD + bytes).next_multiple_of(GRAIN) + PLACES
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_as_much_as_those_that_came() {
        let sizes = Sizes::default();
        assert_eq!(name_bytes(&sizes), NAME_BYTES);
        sizes.came(1000, 8000);
        assert_eq!(name_bytes(&sizes), 64);
        sizes.came(1000, 200_000);
        assert_eq!(name_bytes(&sizes), 160);
    }
}
