//! What a file system holds of the memory budget, and its limits.

use crate::core::Core;
use crate::reclaim::balance::Side;
use crate::reclaim::ghosts::Ghosts;
use crate::reclaim::shrinkers::{Content, Kernel, Metadata, Names, Shrinkers};
use crate::reclaim::sizes::{ALONE_BYTES, INODE_BYTES, bytes_per_name};
use holdfast_cache::memory::{Class, Member, Usage};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// Inodes that were read ahead and not used yet may take this part of half of the limit, but at
/// least this number.
const READAHEAD_PART: u64 = 8;
const READAHEAD_LEAST: u64 = 256;

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

pub(crate) fn metadata_bytes(core: &Core) -> u64 {
    inode_bytes(core) + name_bytes(core)
}

/// The limit of inodes and names: their share, and what content leaves.
pub(crate) fn metadata_max(core: &Core) -> u64 {
    let (whole, balance) = (core.reclaim.limit(), &core.reclaim.balance);
    let left = whole.saturating_sub(core.cache.bytes());
    balance.metadata(whole).max(left)
}

/// The limit of content: its share, and what inodes and names leave.
pub(crate) fn content_max(core: &Core) -> u64 {
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
pub(crate) fn balance_sides(core: &Core) {
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
