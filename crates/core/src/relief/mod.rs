//! Memory over a store that can bring things back has a limit: beyond it they go.
//!
//! Reads write nothing, so nobody knows what is used often. Hands go round over the inodes, by
//! number, and take what they meet: one the pages of files ([`content`](self)), one the inodes
//! that nobody uses, with their names. What is wanted again comes back, and then has a whole round
//! before it.
//!
//! Who adds something looks whether there is too much, but only with every so many bytes, or names,
//! that his own core added: so nobody reads a line for it that others write.
//!
//! *Locking.* A hand's lock comes before all others: it is taken with nothing held.

mod content;
mod inodes;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use holdfast_cache::PAGE_SIZE;
use parking_lot::{Mutex, MutexGuard};

use crate::file_system::{Core, memory_pages};

/// What an inode takes in memory, about, without its names; as measured.
const INODE_BYTES: u64 = 168;
/// What a name takes, about.
const NAME_BYTES: u64 = 64;

/// How much may be in memory, and where the next will go.
#[derive(Debug)]
pub(crate) struct Relief {
    limit: AtomicU64,
    content: Mutex<content::Hand>,
    inodes: Mutex<inodes::Hand>,
}

impl Relief {
    /// With this limit in bytes, or the usual one.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        let relief = Self {
            limit: AtomicU64::new(0),
            content: Mutex::default(),
            inodes: Mutex::default(),
        };
        relief.set(limit);
        relief
    }

    /// Changes the limit.
    pub(crate) fn set(&self, limit: Option<u64>) {
        let usual = || memory_pages().saturating_mul(PAGE_SIZE as u64) / 8;
        self.limit.store(limit.unwrap_or_else(usual), Relaxed);
    }

    /// Bytes, of everything.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }
}

/// A hand, if it is free, or there is so much too much that waiting for it is in order.
fn lock<H>(hand: &Mutex<H>, held: u64, limit: u64) -> Option<MutexGuard<'_, H>> {
    if held > limit + limit / 4 {
        Some(hand.lock())
    } else {
        hand.try_lock()
    }
}

/// Did a counter come by a multiple of this power of two on its way up?
fn passed(before: i64, now: i64, step: u64) -> bool {
    let shift = step.max(1).next_power_of_two().trailing_zeros();
    now > before && now >> shift != before >> shift
}

impl Core {
    /// What inodes and names take in memory, about.
    fn metadata_bytes(&self) -> u64 {
        let names = u64::try_from(self.names.sum()).unwrap_or(0);
        self.index.len() * INODE_BYTES + names * NAME_BYTES
    }
}
