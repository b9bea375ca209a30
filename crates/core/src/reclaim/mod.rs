//! Reclaim of memory over a store that can load the data again.
//!
//! CLOCK hands scan the inodes by number: some free the pages of files, some evict unused inodes,
//! with their names. An object enters on *probation*. If it was not referenced again when a hand
//! passes, it is evicted; otherwise it moves to the *main* set. The main set is scanned only when
//! probation gets small (as in S3-FIFO: Yang et al., SOSP 2023). So a walk over everything passes
//! through, and does not evict what is used. An object that is loaded again soon after its eviction
//! enters the main set. Between two passes of a hand only the first use writes: see
//! `inode/aging.rs`.
//!
//! The [registry](holdfast_cache::reclaim) of the process's memory decides how much is scanned; its
//! shrinkers are here: [`metadata`], [`content`] and [`kernel`].
//!
//! An operation that adds objects checks the limit only after a number of bytes or names were added
//! on its own CPU. So it reads no cache line that other CPUs write.
//!
//! *Locking.* A hand's lock comes after its shrinker's lock, which is taken with no lock held, and
//! before all others.

pub(crate) mod balance;
pub(crate) mod content;
pub(crate) mod ghosts;
pub(crate) mod kernel;
pub(crate) mod metadata;
pub(crate) mod sizes;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use holdfast_cache::memory::{Class, Member, Memory, Usage};
use holdfast_cache::reclaim::Registered;
use holdfast_sync::ShardedCounter;
use once_cell::race::OnceBox;

use crate::core::Core;
use crate::inode::{Epochs, Inode, Part, Scanned, Set};
use balance::{Balance, Side};
use content::Content;
pub(crate) use content::page_key;
use ghosts::Ghosts;
use kernel::Kernel;
use metadata::{Metadata, Names};
use sizes::{Sizes, bytes_per_name};

/// Memory of an inode without its slot in the index, and without rare parts.
const ALONE_BYTES: u64 = size_of::<Inode>() as u64;
/// The same with its slot, where numbers are dense.
const INODE_BYTES: u64 = ALONE_BYTES + 8;
/// About the memory of a usual name.
pub(crate) const NAME_BYTES: u64 = 64;

/// Inodes that were read ahead and not used yet may take this part of half of the limit, but at
/// least this number.
const READAHEAD_PART: u64 = 8;
const READAHEAD_LEAST: u64 = 256;

/// The limit and the state of reclaim.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// Shared with the store, and with other file systems.
    pub(crate) memory: Arc<Memory>,
    /// Bytes of it that inodes, names and content may use.
    limit: AtomicU64,
    /// The epochs of references.
    pub(crate) epochs: Epochs,
    /// Inodes in the main set.
    pub(crate) main: ShardedCounter,
    /// How often one moved to that set because it was referenced again.
    pub(crate) promoted: ShardedCounter,
    /// Inodes that were recently evicted from probation.
    pub(crate) ghosts: Ghosts,
    /// The same for content: small files as a whole, others page by page. Counted in pages.
    pub(crate) content_ghosts: Ghosts,
    /// The sizes of names.
    pub(crate) name_sizes: Sizes,
    /// The sizes of extensions: extended attributes, targets, parts of directories.
    pub(crate) extension_sizes: Sizes,
    /// The shares of metadata and content.
    balance: Balance,
    /// The shrinkers; none if nothing can be evicted.
    shrinkers: OnceBox<Shrinkers>,
}

/// The shrinkers of a file system.
#[derive(Debug)]
struct Shrinkers {
    metadata: Arc<Registered<Metadata>>,
    names: Arc<Registered<Names>>,
    content: Arc<Registered<Content>>,
    kernel: Arc<Registered<Kernel>>,
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

    /// Is a thread evicting inodes?
    pub(crate) fn frees_inodes(&self) -> bool {
        let shrinkers = self.shrinkers.get();
        shrinkers.is_some_and(|shrinkers| shrinkers.metadata.is_busy())
    }

    /// Was an inode of this set not used since the last scan?
    pub(crate) fn is_idle(&self, inode: &Inode, set: Set) -> bool {
        let scanned = inode.scan(Part::Inode, set, &self.epochs);
        if scanned == Scanned::Promoted {
            self.main.add(1);
            self.promoted.add(1);
        }
        scanned == Scanned::Idle
    }

    /// Can the store load all of an inode again? An inode on probation then leaves a ghost.
    pub(crate) fn can_go(&self, inode: &Inode, set: Set) -> bool {
        let goes = !inode.has_space_of_its_own();
        if goes && set == Set::Probation {
            self.ghosts.note(inode.key(), 1, self.inodes_max());
        }
        goes
    }

    /// Bytes of everything that can be evicted.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// The number of inodes that fit with their names, and as much content.
    pub(crate) fn inodes_max(&self) -> u64 {
        self.limit() / 2 / (INODE_BYTES + NAME_BYTES)
    }
}

/// The increase of a counter between multiples of a power of two, the first that is no less than
/// `step`.
fn passed(before: i64, now: i64, step: u64) -> u64 {
    let shift = step.max(1).next_power_of_two().trailing_zeros();
    let steps = (now >> shift).saturating_sub(before >> shift);
    u64::try_from(steps).unwrap_or(0) << shift
}

/// Joins the memory that it was made with: what it holds counts, and is freed on demand.
pub(crate) fn join_memory(core: &Arc<Core>) {
    let memory = &core.reclaim.memory;
    let all = memory.shrinkers();
    let shrinkers = Shrinkers {
        metadata: all.register(Metadata::default(), core),
        names: all.register(Names::default(), core),
        content: all.register(Content::default(), core),
        kernel: all.register(Kernel::default(), core),
    };
    // It joins once.
    let _ = core.reclaim.shrinkers.set(Box::new(shrinkers));
    memory.join(Arc::downgrade(core) as Weak<dyn Member>);
}

/// About the memory of inodes.
fn inode_bytes(core: &Core) -> u64 {
    let each = ALONE_BYTES + core.reclaim.extension_sizes.mean().unwrap_or(0);
    core.index.len() * each + core.index.node_bytes()
}

/// About the memory of names.
pub(crate) fn name_bytes(core: &Core) -> u64 {
    u64::try_from(core.names.sum()).unwrap_or(0) * bytes_per_name(&core.reclaim.name_sizes)
}

fn metadata_bytes(core: &Core) -> u64 {
    inode_bytes(core) + name_bytes(core)
}

/// The limit of inodes and names: their share, and what content leaves.
fn metadata_max(core: &Core) -> u64 {
    let (whole, balance) = (core.reclaim.limit(), &core.reclaim.balance);
    let left = whole.saturating_sub(core.cache.bytes());
    balance.metadata(whole).max(left)
}

/// The limit of content: its share, and what inodes and names leave.
fn content_max(core: &Core) -> u64 {
    let (whole, balance) = (core.reclaim.limit(), &core.reclaim.balance);
    whole - balance.metadata(whole).min(metadata_bytes(core))
}

/// The number of inodes that may still be read ahead. 0 while inodes are being evicted.
pub(crate) fn prefetch_room(core: &Core) -> usize {
    if core.reclaim.frees_inodes() {
        return 0;
    }
    let share = core.reclaim.limit() / 2 / READAHEAD_PART / INODE_BYTES;
    let is_scarce = metadata_bytes(core) > metadata_max(core) / 4 * 3;
    let most = if is_scarce { share / 2 } else { share }.max(READAHEAD_LEAST);
    let unmet = core.readahead.issued.sum()
        - core.reclaim.epochs.first_uses.sum()
        - core.readahead.wasted.sum();
    let room = most.saturating_sub(u64::try_from(unmet).unwrap_or(0));
    usize::try_from(room).unwrap_or(usize::MAX)
}

/// Updates the shares by the refaults.
fn balance_sides(core: &Core) {
    let refaults = |ghosts: &Ghosts| u64::try_from(ghosts.refaults.sum()).unwrap_or(0);
    let reclaim = &core.reclaim;
    let metadata = Side {
        held: metadata_bytes(core),
        refaults: refaults(&reclaim.ghosts),
    };
    let content = Side {
        held: core.cache.bytes(),
        refaults: refaults(&reclaim.content_ghosts),
    };
    reclaim.balance.update(metadata, content);
}

impl Member for Core {
    fn usage(&self) -> Usage {
        Usage::NONE
            .with(
                Class::Inodes,
                inode_bytes(self) + self.reclaim.ghosts.bytes(),
            )
            .with(Class::Names, name_bytes(self))
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
