//! Memory over a store that can bring things back has a limit: beyond it they go.
//!
//! Hands go round over the inodes, by number: some take the pages of files ([`content`](self)), some the inodes
//! that nobody uses, with their names. What has come and was not used again since goes when a hand comes by; what was is in the
//! *main* set from then on, where a hand goes round only when what is on probation gets short (as in S3-FIFO: Yang et al., SOSP
//! 2023). So a walk over everything passes through, and leaves what is used alone. What went too early is in the main set when it
//! comes again. Uses cost no write unless a hand came by: see `inode/heat.rs`.
//!
//! Who adds something looks whether there is too much, but only with every so many bytes, or names,
//! that his own core added: so nobody reads a line for it that others write.
//!
//! *Locking.* A hand's lock comes before all others: it is taken with nothing held.

mod content;
mod ghosts;
mod inodes;
mod readahead;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use holdfast_cache::memory::{Class, Member, Memory, Usage};
use holdfast_sync::ShardedCounter;
use parking_lot::{Mutex, MutexGuard};

use crate::file_system::Core;
use crate::inode::Epochs;
use ghosts::Ghosts;

/// What an inode takes in memory, about, without its names; as measured.
const INODE_BYTES: u64 = 168;
/// What a name takes, about.
pub(crate) const NAME_BYTES: u64 = 64;
/// Looks left out in a row, at most.
const WAIT_MAX: u32 = 63;

/// How much may be in memory, and where the next will go.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// Shared with the store, and with other file systems.
    pub(crate) memory: Arc<Memory>,
    /// What of it inodes, names and content may take, in bytes.
    limit: AtomicU64,
    /// By which uses count.
    pub(crate) epochs: Epochs,
    /// Inodes in the main set.
    pub(crate) main: ShardedCounter,
    /// Inodes that went from probation lately.
    pub(crate) ghosts: Ghosts,
    content: Mutex<content::Hand>,
    inodes: Mutex<inodes::Hand>,
    /// What an observer was asked for.
    asking: Mutex<inodes::Asking>,
}

impl Reclaim {
    /// Within this memory.
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            limit: AtomicU64::new(memory.limit()),
            memory,
            epochs: Epochs::default(),
            main: ShardedCounter::new(),
            ghosts: Ghosts::default(),
            content: Mutex::default(),
            inodes: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    /// Bytes, of everything that can go.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }
}

/// Looks to be left out, because those before were of no use: a kernel may use all inodes there are, or
/// what is left may be what is known of files, not their bytes.
#[derive(Debug, Default)]
struct Patience {
    left: u32,
    /// How many were left out the last time.
    waited: u32,
}

impl Patience {
    /// Is this look to be left out?
    fn waits(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    fn was_of_use(&mut self, was: bool) {
        self.waited = match was {
            true => 0,
            false => (self.waited * 2 + 1).min(WAIT_MAX),
        };
        self.left = self.waited + 1;
    }
}

/// A hand, if it is free, or there is so much too much that waiting for it is in order.
fn lock<H>(hand: &Mutex<H>, held: u64, limit: u64) -> Option<MutexGuard<'_, H>> {
    if held > limit + limit / 32 {
        Some(hand.lock())
    } else {
        hand.try_lock()
    }
}

/// How far did a counter go up, from one multiple of a power of two to another? That is the first that is no less than `step`.
fn passed(before: i64, now: i64, step: u64) -> u64 {
    let shift = step.max(1).next_power_of_two().trailing_zeros();
    let steps = (now >> shift).saturating_sub(before >> shift);
    u64::try_from(steps).unwrap_or(0) << shift
}

impl Core {
    /// What inodes take in memory, about.
    fn inode_bytes(&self) -> u64 {
        self.index.len() * INODE_BYTES
    }

    /// What names take in memory, about.
    fn name_bytes(&self) -> u64 {
        u64::try_from(self.names.sum()).unwrap_or(0) * NAME_BYTES
    }

    fn metadata_bytes(&self) -> u64 {
        self.inode_bytes() + self.name_bytes()
    }
}

impl Member for Core {
    fn usage(&self) -> Usage {
        Usage::NONE
            .with(Class::Inodes, self.inode_bytes())
            .with(Class::Names, self.name_bytes())
            .with(Class::Content, self.cache.bytes())
            .with(Class::Kernel, self.ends.away().bytes)
    }

    fn limit(&self, _all: u64, own: u64) {
        self.reclaim.limit.store(own, Relaxed);
    }

    fn reclaim(&self) {
        self.relieve_inodes();
        self.relieve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_no_use_come_less_often_until_one_is_of_use() {
        let mut patience = Patience::default();
        let mut looks = |of_use: bool, asked: u32| {
            let mut made = 0;
            for _ in 0..asked {
                if !patience.waits() {
                    made += 1;
                    patience.was_of_use(of_use);
                }
            }
            made
        };
        assert_eq!(looks(true, 100), 100);
        assert_eq!(looks(false, 1000), 6 + 1000 / 64 - 1);
        looks(true, 64);
        assert_eq!(looks(true, 100), 100);
    }

    #[test]
    fn a_step_is_passed_upwards_alone() {
        assert_eq!(passed(4095, 4096, 4096), 4096);
        assert_eq!(passed(0, 10_000, 4096), 8192, "as many as came");
        assert_eq!(passed(-1, 0, 1), 1);
        assert_eq!(passed(5, 8, 0), 3, "a limit of nothing has no steps");
        for (before, now) in [(4096, 4097), (4096, 4095), (0, -1), (i64::MAX, i64::MIN)] {
            assert_eq!(passed(before, now, 4096), 0, "{before} to {now}");
        }
    }
}
