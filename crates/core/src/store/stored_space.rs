//! How much space a file takes in its store, as its record says it.

use std::fmt;

use holdfast_cache::PAGE_SIZE;

/// Space of a regular file in pages of 4 KiB: for nearly all files what their size says. Of anything else it
/// means nothing.
///
/// *Invariant.* A number of pages is kept only where the size says another one: equal spaces are equal values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoredSpace(u64);

/// Behind all numbers of pages that a file can have.
const UNKNOWN: u64 = u64::MAX;
const AS_SIZE: u64 = u64::MAX - 1;

impl StoredSpace {
    /// The record does not say: the store has to be asked for the file's runs.
    pub const UNKNOWN: Self = Self(UNKNOWN);
    /// Each page before the file's end, and none behind it.
    pub const AS_SIZE: Self = Self(AS_SIZE);

    /// So many pages, of a file of so many bytes.
    #[must_use]
    #[inline]
    pub const fn of(pages: u64, size: u64) -> Self {
        if pages == pages_of(size) {
            return Self::AS_SIZE;
        }
        Self(if pages < AS_SIZE { pages } else { UNKNOWN })
    }

    /// The pages of a file of so many bytes, if they are known.
    #[must_use]
    #[inline]
    pub const fn pages(self, size: u64) -> Option<u64> {
        match self.0 {
            UNKNOWN => None,
            AS_SIZE => Some(pages_of(size)),
            pages => Some(pages),
        }
    }

    /// The pages, where the size says others.
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

impl fmt::Debug for StoredSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            UNKNOWN => f.write_str("unknown"),
            AS_SIZE => f.write_str("as the size says"),
            pages => write!(f, "{pages} pages"),
        }
    }
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
