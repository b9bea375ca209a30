use holdfast_sync::ShardedCounter;
use holdfast_types::Result;
use std::fmt;

/// Room for pages in a file system, in pages of [`PAGE_SIZE`](crate::PAGE_SIZE) bytes.
pub trait Space: Send + Sync {
    /// Reserves room for `pages` more pages: all of them, or none.
    ///
    /// # Errors
    /// `ENOSPC` when the file system is full, `EDQUOT` when its owner's quota is used up.
    fn reserve(&self, pages: u64) -> Result<()>;

    /// Gives back room for `pages` pages that were reserved before.
    fn release(&self, pages: u64);
}

/// Space reserved and not yet placed. Dropping it gives back the rest.
#[must_use = "a dropped reservation gives its pages back"]
pub struct Reservation<'a> {
    space: &'a dyn Space,
    pages: u64,
}

impl<'a> Reservation<'a> {
    /// A reservation of `pages` pages.
    ///
    /// # Errors
    /// Those of [`Space::reserve`]; nothing is reserved then.
    pub fn new(space: &'a dyn Space, pages: u64) -> Result<Self> {
        let mut reservation = Self::none(space);
        reservation.grow(pages)?;
        Ok(reservation)
    }

    /// A reservation of no pages.
    pub fn none(space: &'a dyn Space) -> Self {
        Self { space, pages: 0 }
    }

    /// The pages reserved and not yet placed.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Reserves `more` pages in addition.
    ///
    /// # Errors
    /// Those of [`Space::reserve`]; the reservation stays as it was.
    pub fn grow(&mut self, more: u64) -> Result<()> {
        if more > 0 {
            self.space.reserve(more)?;
            self.pages += more;
        }
        Ok(())
    }

    /// Takes `pages` out of the reservation: the caller's structure holds them now, and will
    /// release them.
    ///
    /// # Panics
    /// If fewer are reserved.
    pub fn place(&mut self, pages: u64) {
        self.pages = self
            .pages
            .checked_sub(pages)
            .expect("more pages placed than promised");
    }

    /// Adds `pages` that were held to the reservation, which gives them back in the end.
    pub fn take_back(&mut self, pages: u64) {
        self.pages += pages;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.pages > 0 {
            self.space.release(self.pages);
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}

/// What the page cache of one file system holds in memory.
#[derive(Debug, Default)]
pub struct CacheStats {
    frames: ShardedCounter,
    bytes: ShardedCounter,
}

impl CacheStats {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pages with content in memory (holes and unwritten pages have none).
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.frames.sum().max(0).cast_unsigned()
    }

    /// Bytes of memory: frames and the tables that find them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.sum().max(0).cast_unsigned()
    }

    /// A counter that grows by the bytes that this thread adds. Only differences of it mean
    /// something, and they may contain changes of other threads that had the slot.
    #[inline]
    #[must_use]
    pub fn own_bytes(&self) -> i64 {
        self.bytes.own()
    }

    /// Counts bytes as held until the result is dropped: of a buffer with content that becomes
    /// pages.
    pub fn hold(&self, bytes: u64) -> HeldBytes<'_> {
        let bytes = bytes.cast_signed();
        self.bytes.add(bytes);
        HeldBytes { stats: self, bytes }
    }

    pub(crate) fn update(&self, before: Held, after: Held) {
        if before.frames != after.frames {
            self.frames
                .add(after.frames.wrapping_sub(before.frames).cast_signed());
        }
        if before.bytes != after.bytes {
            self.bytes
                .add(after.bytes.wrapping_sub(before.bytes).cast_signed());
        }
    }
}

/// Bytes that are counted, and will become pages.
#[derive(Debug)]
#[must_use = "they are counted as long as this is there"]
pub struct HeldBytes<'s> {
    stats: &'s CacheStats,
    bytes: i64,
}

impl Drop for HeldBytes<'_> {
    fn drop(&mut self) {
        self.stats.bytes.add(-self.bytes);
    }
}

/// Where a file's pages are charged. An owner passes the same account to every call.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// Reserves room for pages.
    pub space: &'a dyn Space,
    /// Counts what is in memory.
    pub stats: &'a CacheStats,
}

impl fmt::Debug for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("stats", self.stats)
            .finish_non_exhaustive()
    }
}

/// What one file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Pages of space: frames and unwritten pages.
    pub(crate) pages: u64,
    /// Pages with content in memory.
    pub(crate) frames: u64,
    /// Bytes of memory, tables included.
    pub(crate) bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpacePool;
    use holdfast_types::Errno;

    #[test]
    fn a_reservation_gives_back_what_was_not_placed() {
        let pool = SpacePool::new(Some(10));
        let mut reservation = Reservation::new(&pool, 6).unwrap();
        reservation.place(2);
        assert_eq!(reservation.grow(5), Err(Errno::ENOSPC));
        assert_eq!(reservation.pages(), 4);
        drop(reservation);
        assert_eq!(pool.used(), 2);
        let mut reservation = Reservation::new(&pool, 0).unwrap();
        reservation.take_back(2);
        drop(reservation);
        assert_eq!(pool.used(), 0);
    }
}
