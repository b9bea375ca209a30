//! The space that a file takes in its store, as its record states it.

use holdfast_cache::PAGE_SIZE;

/// Space of a regular file in pages of 4 KiB: for nearly all files, its size determines it.
/// Meaningless for other types.
///
/// *Invariant.* A number of pages is stored only if the size implies another one: equal spaces are
/// equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSpace(u64);

/// Above every possible number of pages.
const UNKNOWN: u64 = u64::MAX;
const AS_SIZE: u64 = u64::MAX - 1;

impl StoredSpace {
    /// The record does not contain it: the store has to be asked for the file's runs.
    pub const UNKNOWN: Self = Self(UNKNOWN);
    /// Each page up to the file's end, and none beyond.
    pub const AS_SIZE: Self = Self(AS_SIZE);

    /// For a file of `size` bytes that takes `pages` pages.
    #[must_use]
    #[inline]
    pub const fn of(pages: u64, size: u64) -> Self {
        if pages == pages_of(size) {
            return Self::AS_SIZE;
        }
        Self(if pages < AS_SIZE { pages } else { UNKNOWN })
    }

    /// The pages of a file of `size` bytes, if they are known.
    #[must_use]
    #[inline]
    pub const fn pages(self, size: u64) -> Option<u64> {
        match self.0 {
            UNKNOWN => None,
            AS_SIZE => Some(pages_of(size)),
            pages => Some(pages),
        }
    }

    /// The pages, if they differ from what the size implies.
    #[must_use]
    #[inline]
    pub const fn beside_size(self) -> Option<u64> {
        match self.0 {
            UNKNOWN | AS_SIZE => None,
            pages => Some(pages),
        }
    }
}

/// The pages of a file without holes.
const fn pages_of(size: u64) -> u64 {
    size.div_ceil(PAGE_SIZE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_size_says_has_one_value() {
        assert_eq!(StoredSpace::of(1, 1000), StoredSpace::AS_SIZE);
        assert_eq!(StoredSpace::of(0, 0), StoredSpace::AS_SIZE);
        assert_eq!(StoredSpace::AS_SIZE.pages(4097), Some(2));
        assert_eq!(StoredSpace::of(0, 1000).pages(1000), Some(0));
        assert_eq!(StoredSpace::of(7, 0).beside_size(), Some(7));
        assert_eq!(StoredSpace::UNKNOWN.pages(1000), None);
        assert_eq!(StoredSpace::of(u64::MAX, 5), StoredSpace::UNKNOWN);
        assert_eq!(StoredSpace::of(u64::MAX - 1, 5), StoredSpace::UNKNOWN);
    }
}
