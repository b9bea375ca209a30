//! Counts and properties of a file system: for reports, and for front ends.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_cache::memory::Memory;
use holdfast_sync::ShardedCounter;

use crate::FileSystem;
use crate::options::Stats;
use crate::types::{Ino, NAME_MAX, Result, StatFs};

impl FileSystem {
    /// Counts of the objects in memory.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = &self.core;
        let count = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        Stats {
            inodes: core.index.len(),
            names: count(&core.names),
            pages: core.cache.pages(),
            bytes: core.cache.bytes(),
            open_files: core.registration.place().open_files(),
            watches: core.watches.count() as u64,
            locks: core.lock_graph.held(),
            inodes_away: core.evictions.away().inodes,
            statahead_issued: count(&core.readahead.issued),
            statahead_used: count(&core.reclaim.epochs.first_uses),
            statahead_wasted: count(&core.readahead.wasted),
            promoted: count(&core.reclaim.promoted),
            refaults: count(&core.reclaim.ghosts.refaults),
            content_refaults: count(&core.reclaim.content_ghosts.refaults),
        }
    }

    /// The memory budget that this file system shares with others. `None`: all its data is in
    /// memory alone.
    #[must_use]
    pub fn memory_in_use(&self) -> Option<&Arc<Memory>> {
        (!self.core.pinned).then_some(&self.core.reclaim.memory)
    }

    /// The result of statfs(2). A store without a limit shows the machine's memory as its size.
    ///
    /// # Errors
    /// Those of the store.
    pub fn statfs(&self) -> Result<StatFs> {
        self.core.alive()?;
        let space = self.core.store.space()?;
        let pages = space
            .pages
            .unwrap_or_else(memory_pages)
            .max(space.pages_used);
        let files = space
            .inodes
            .unwrap_or_else(memory_pages)
            .max(space.inodes_used);
        let free = pages - space.pages_used;
        let available = free.saturating_sub(space.pages_reserved);
        Ok(StatFs {
            block_size: 4096,
            blocks: pages,
            blocks_free: free,
            blocks_available: available,
            files,
            files_free: files - space.inodes_used,
            name_max: NAME_MAX as u32,
        })
    }

    /// Stops the clock of the epochs, which writes once a second. For an audit in which a second
    /// may pass between any two instructions.
    #[doc(hidden)]
    pub fn hold_epochs(&self) {
        self.core.reclaim.epochs.hold();
    }

    /// May calls wait for a device? Then a front end keeps them off threads that must not block.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.core.store.guarantees().blocks
    }

    /// Is its store asked by name, inode by inode, because others may change it
    /// ([`Shared`](crate::store::Shared))? Then reading attributes in advance may cost a slow
    /// request each.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.core.coherence.is_some()
    }

    /// Is a front end that read this inode, or a name of this directory, notified of changes by
    /// others since then ([`Coherence::Notified`](crate::store::Coherence::Notified))? Then it may
    /// cache what it read for as long as such answers are valid, but not longer than this
    /// ([`Duration::MAX`]: no other limit). `since` is from before the read.
    #[must_use]
    pub fn notified_for(&self, ino: Ino, since: Instant) -> Option<Duration> {
        let shared = self.core.shared()?;
        (shared.coherence).notified_for(ino, since, shared.present())
    }
}

/// The machine's memory in pages: the most that a store without a limit can hold.
fn memory_pages() -> u64 {
    let info = rustix::system::sysinfo();
    let unit = u64::from(info.mem_unit).max(1);
    (info.totalram as u64).saturating_mul(unit) / 4096
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
