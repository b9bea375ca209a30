use std::fmt;

/// Adjacent blocks of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first block's number.
    pub start: u64,
    /// How many blocks.
    pub length: u64,
}

impl Extent {
    /// `length` blocks from `start` on.
    #[must_use]
    pub const fn new(start: u64, length: u64) -> Self {
        Self { start, length }
    }

    /// The number behind the last block's. Bytes from disk may give an end beyond 64 bits: it is
    /// then the greatest number, and the extent is refused where it is used.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// Is this block one of it?
    #[must_use]
    pub const fn contains(&self, block: u64) -> bool {
        block >= self.start && block < self.end()
    }

    /// Do the two have a block in common?
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }

    /// The first `length` blocks (or all, if there are fewer), and those behind them.
    #[must_use]
    pub fn split(&self, length: u64) -> (Self, Self) {
        let length = length.min(self.length);
        let rest = Self::new(self.start + length, self.length - length);
        (Self::new(self.start, length), rest)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks from {}", self.length, self.start)
    }
}
