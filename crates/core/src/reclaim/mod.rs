//! Memory over a store that can bring things back has a limit: beyond it they go.
//!
//! Hands go round over the inodes, by number: some take the pages of files, some the inodes
//! that nobody uses, with their names. What has come and was not used again since goes when a hand comes by; what was is in the
//! *main* set from then on, where a hand goes round only when what is on probation gets short (as in S3-FIFO: Yang et al., SOSP
//! 2023). So a walk over everything passes through, and leaves what is used alone. What went too early is in the main set when it
//! comes again. Uses cost no write unless a hand came by: see `inode/aging.rs`.
//!
//! What decides how much is looked at is the [registry](holdfast_cache::reclaim) of the process's memory; here are its shrinkers:
//! [`metadata`], [`names`], [`content`] and [`kernel`].
//!
//! An operation that adds something looks whether there is too much, but only with every so many bytes, or names,
//! that were added on its own processor: so none reads a line for it that others write.
//!
//! *Locking.* A hand's lock is taken below its shrinker's turn, which is taken with nothing held, and above all others.

mod balance;
mod content;
mod ghosts;
mod kernel;
mod metadata;
mod names;
mod readahead;
mod sizes;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use holdfast_cache::memory::{Class, Member, Memory, Usage};
use holdfast_cache::reclaim::Registered;
use holdfast_sync::ShardedCounter;
use once_cell::race::OnceBox;

use crate::file_system::Core;
use crate::inode::{Epochs, Inode};
use balance::{Balance, Side};
use content::Content;
pub(crate) use content::page_key;
use ghosts::Ghosts;
use kernel::Kernel;
pub(crate) use kernel::Observed;
use metadata::Metadata;
pub(crate) use names::Directories;
use names::Names;
use sizes::{Sizes, name_bytes};

/// What an inode takes in memory, without what finds it, and what not all of them have.
const ALONE_BYTES: u64 = size_of::<Inode>() as u64;
/// The same with what finds it, where numbers are dense.
const INODE_BYTES: u64 = ALONE_BYTES + 8;
/// What a usual name takes, about.
pub(crate) const NAME_BYTES: u64 = 64;

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
    /// How often one came to that set because it was used again.
    pub(crate) promoted: ShardedCounter,
    /// Inodes that went from probation lately.
    pub(crate) ghosts: Ghosts,
    /// The same of the content of files: of small ones as a whole, of others page by page. Counted in pages.
    pub(crate) content_ghosts: Ghosts,
    /// How large names are.
    pub(crate) name_sizes: Sizes,
    /// What inodes have beside themselves: extended attributes, targets, what is of directories.
    pub(crate) extension_sizes: Sizes,
    /// Which part of the limit inodes and names have, and which content.
    balance: Balance,
    /// What frees memory; none where nothing can go.
    shrinkers: OnceBox<Shrinkers>,
}

/// The shrinkers of a file system.
#[derive(Debug)]
struct Shrinkers {
    metadata: Arc<Registered<Metadata>>,
    names: Arc<Registered<Names<Core>>>,
    content: Arc<Registered<Content>>,
    kernel: Arc<Registered<Kernel<Core>>>,
}

impl Reclaim {
    /// Within this memory.
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            limit: AtomicU64::new(memory.limit()),
            memory,
            epochs: Epochs::default(),
            main: ShardedCounter::new(),
            promoted: ShardedCounter::new(),
            ghosts: Ghosts::default(),
            content_ghosts: Ghosts::default(),
            name_sizes: Sizes::default(),
            extension_sizes: Sizes::default(),
            balance: Balance::default(),
            shrinkers: OnceBox::new(),
        }
    }

    /// Is a thread at letting inodes go?
    pub(crate) fn frees_inodes(&self) -> bool {
        let shrinkers = self.shrinkers.get();
        shrinkers.is_some_and(|shrinkers| shrinkers.metadata.is_busy())
    }

    /// Bytes, of everything that can go.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Inodes that there can be with their names, and as much room for content.
    pub(crate) fn inodes_max(&self) -> u64 {
        self.limit() / 2 / (INODE_BYTES + NAME_BYTES)
    }
}

/// How far did a counter go up, from one multiple of a power of two to another? That is the first that is no less than `step`.
fn passed(before: i64, now: i64, step: u64) -> u64 {
    let shift = step.max(1).next_power_of_two().trailing_zeros();
    let steps = (now >> shift).saturating_sub(before >> shift);
    u64::try_from(steps).unwrap_or(0) << shift
}

impl Core {
    /// Takes part in the memory that it was made with: what it holds counts, and is freed when it is too much.
    pub(crate) fn join_memory(self: &Arc<Self>) {
        let memory = &self.reclaim.memory;
        let all = memory.shrinkers();
        let shrinkers = Shrinkers {
            metadata: all.register(Metadata::default(), self),
            names: all.register(Names::default(), self),
            content: all.register(Content::default(), self),
            kernel: all.register(Kernel::default(), self),
        };
        // It joins once.
        let _ = self.reclaim.shrinkers.set(Box::new(shrinkers));
        memory.join(Arc::downgrade(self) as Weak<dyn Member>);
    }

    /// What inodes take in memory, about.
    fn inode_bytes(&self) -> u64 {
        let each = ALONE_BYTES + self.reclaim.extension_sizes.mean().unwrap_or(0);
        self.index.len() * each + self.index.node_bytes()
    }

    /// What names take in memory, about.
    pub(crate) fn name_bytes(&self) -> u64 {
        u64::try_from(self.names.sum()).unwrap_or(0) * name_bytes(&self.reclaim.name_sizes)
    }

    fn metadata_bytes(&self) -> u64 {
        self.inode_bytes() + self.name_bytes()
    }

    /// What inodes and names may take: their part, and what content leaves.
    fn metadata_max(&self) -> u64 {
        let (whole, balance) = (self.reclaim.limit(), &self.reclaim.balance);
        let left = whole.saturating_sub(self.cache.bytes());
        balance.metadata(whole).max(left)
    }

    /// What content may take: its part, and what inodes and names leave.
    fn content_max(&self) -> u64 {
        let (whole, balance) = (self.reclaim.limit(), &self.reclaim.balance);
        whole - balance.metadata(whole).min(self.metadata_bytes())
    }

    /// Looks which of the two had better have more.
    fn weigh_sides(&self) {
        let refaults = |ghosts: &Ghosts| u64::try_from(ghosts.refaults.sum()).unwrap_or(0);
        let reclaim = &self.reclaim;
        let metadata = Side {
            held: self.metadata_bytes(),
            refaults: refaults(&reclaim.ghosts),
        };
        let content = Side {
            held: self.cache.bytes(),
            refaults: refaults(&reclaim.content_ghosts),
        };
        reclaim.balance.weigh(metadata, content);
    }
}

impl Member for Core {
    fn usage(&self) -> Usage {
        Usage::NONE
            .with(
                Class::Inodes,
                self.inode_bytes() + self.reclaim.ghosts.bytes(),
            )
            .with(Class::Names, self.name_bytes())
            .with(Class::Content, self.cache.bytes())
            .with(Class::Kernel, self.evictions.away().bytes)
    }

    fn limit(&self, _all: u64, own: u64) {
        self.reclaim.limit.store(own, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
