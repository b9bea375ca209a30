//! How much memory the content of files may take, and what is counted of it.

use super::pack;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Limits until the store joins a memory budget.
const DIRTY: u64 = 64 << 20;
const CLEAN: u64 = 128 << 20;
/// The least of both.
const LEAST: u64 = 1 << 20;
/// The most bytes of blocks. The core keeps what is read of files.
const BLOCKS: u64 = 256 << 20;

/// Limits, and the bytes that count against them.
#[derive(Debug)]
pub(super) struct Limits {
    /// The limit of dirty bytes that the mount chose.
    given: Option<u64>,
    dirty: AtomicU64,
    clean: AtomicU64,
    /// Bytes of packs that are being stored.
    pub(super) packing: AtomicU64,
}

impl Limits {
    pub(super) fn new(given: Option<u64>) -> Self {
        Self {
            given,
            dirty: AtomicU64::new(given.unwrap_or(DIRTY).max(LEAST)),
            clean: AtomicU64::new(CLEAN),
            packing: AtomicU64::new(0),
        }
    }

    /// The limit of all memory, and the part of it for what can be freed.
    pub(super) fn set(&self, all: u64, own: u64) {
        let dirty = self.given.unwrap_or(u64::MAX).min(match self.given {
            Some(_) => all / 2,
            None => all / 8,
        });
        self.dirty.store(dirty.max(LEAST), Relaxed);
        self.clean.store(own.max(LEAST), Relaxed);
    }

    /// Bytes that may wait for the database.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty.load(Relaxed)
    }

    /// Bytes of files, with content that the database has.
    pub(super) fn files(&self) -> u64 {
        self.clean.load(Relaxed) / 4
    }

    /// Bytes of blocks.
    pub(super) fn blocks(&self) -> u64 {
        (self.clean.load(Relaxed) / 4 * 3).min(BLOCKS)
    }

    /// Bytes of a pack: a part of what may wait, so that packs in the making are few.
    pub(super) fn pack(&self) -> u64 {
        (self.dirty() / 4).clamp(LEAST, pack::MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_given_holds_within_the_budget() {
        let limits = Limits::new(None);
        limits.set(800 << 20, 400 << 20);
        assert_eq!((limits.dirty(), limits.pack()), (100 << 20, pack::MOST));
        assert_eq!((limits.files(), limits.blocks()), (100 << 20, BLOCKS));
        let limits = Limits::new(Some(50 << 20));
        limits.set(800 << 20, 0);
        assert_eq!((limits.dirty(), limits.files()), (50 << 20, LEAST / 4));
        limits.set(64 << 20, 0);
        assert_eq!((limits.dirty(), limits.pack()), (32 << 20, 8 << 20));
    }
}
