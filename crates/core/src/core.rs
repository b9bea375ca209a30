//! The state of one file system, and the checks that all operations begin with.
//!
//! *Locking.* `rename_lock` comes first, and only in renames between two directories; then the
//! locks of inodes; the inode table's shards, watch queues and the store come last. The whole order
//! is in `docs/locking.md`.

use holdfast_cache::CacheStats;
use holdfast_cache::memory::Memory;
use holdfast_sync::{Index, ShardedCounter, epoch};
use once_cell::race::OnceBox;
use parking_lot::RwLock;
use std::sync::Arc;

use crate::coherence::Coherence;
use crate::evictions::Evictions;
use crate::inode::Object;
use crate::lazytime::Lazytime;
use crate::locks::LockGraph;
use crate::node::Node;
use crate::numbers::Numbers;
use crate::observer::Observers;
use crate::options::Options;
use crate::policy::Policy;
use crate::quota::Quotas;
use crate::readahead::Readahead;
use crate::reclaim::Reclaim;
use crate::registry::Registration;
use crate::rename_lock::RenameLock;
use crate::shared::shared_store::SharedStore;
use crate::store::{Behind, Failure, NothingBehind, Scope, Store, Through, Writes};
use crate::types::{Errno, Result};
use crate::unmapped::Unmapped;
use crate::watch::WatchRegistry;

/// A store with a larger number is corrupt: so many are never allocated.
const INO_MAX: u64 = 1 << 62;

/// The state that the handles of one file system share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, for changes: written behind, or through (then `behind` refuses).
    pub(crate) behind: Arc<dyn Behind>,
    pub(crate) through: Option<Arc<dyn Through>>,
    /// Nothing can be loaded, so nothing is evicted.
    pub(crate) pinned: bool,
    /// The changes that free space return it to the store.
    pub(crate) frees: bool,
    /// Files up to this length have no page of their own in the store.
    pub(crate) small: u64,
    pub(crate) options: RwLock<Options>,
    /// The options that every operation checks, without a lock.
    pub(crate) policy: Policy,
    /// The store's latch: no more changes.
    pub(crate) failure: Arc<Failure>,
    /// All inodes in memory.
    pub(crate) index: Index<Object>,
    /// The root, referenced as long as this exists.
    pub(crate) root: OnceBox<Node>,
    pub(crate) numbers: Numbers,
    /// Prevents loads from publishing outdated records.
    pub(crate) evictions: Evictions,
    /// For a store that others may change, and that numbers its inodes.
    pub(crate) coherence: Option<Box<Coherence>>,
    pub(crate) readahead: Readahead,
    /// Access times that are not in the store yet.
    pub(crate) lazytime: Lazytime,
    /// Held by a rename between directories.
    pub(crate) rename_lock: RenameLock,
    pub(crate) watches: WatchRegistry,
    pub(crate) lock_graph: LockGraph,
    pub(crate) observers: Observers,
    pub(crate) cache: CacheStats,
    /// Requests to the store about files that are not mapped.
    pub(crate) unmapped: Unmapped,
    pub(crate) reclaim: Reclaim,
    pub(crate) names: ShardedCounter,
    pub(crate) quotas: Quotas,
    /// Its entry in the registry of instances. Dropped last: inodes contain its number.
    pub(crate) registration: Registration,
}

impl Core {
    /// The parts of a file system over this store, without a root.
    ///
    /// # Errors
    /// Those of the store; `EUCLEAN` for a number out of range. `EINVAL` for a store that is
    /// written through and not shared.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        options: &Options,
        memory: Arc<Memory>,
    ) -> Result<Self> {
        let guarantees = store.guarantees();
        let (behind, through): (Arc<dyn Behind>, _) = match Arc::clone(&store).writes() {
            Writes::Behind(behind) => (behind, None),
            Writes::Through(_) if store.shared().is_none() => return Err(Errno::EINVAL),
            Writes::Through(through) => (Arc::new(NothingBehind), Some(through)),
        };
        let last = behind.last_ino()?;
        if last.0 >= INO_MAX {
            return Err(Errno::EUCLEAN);
        }
        // Before it starts threads of its own.
        epoch::prepare();
        Ok(Self {
            pinned: guarantees.pinned,
            frees: guarantees.frees,
            small: guarantees.small,
            policy: Policy::of(options, guarantees.pinned),
            options: RwLock::new(*options),
            failure: store.failure(),
            index: Index::new(),
            root: OnceBox::new(),
            numbers: Numbers::after(last),
            evictions: Evictions::new(),
            coherence: Coherence::of(&*store),
            readahead: Readahead::default(),
            lazytime: Lazytime::default(),
            rename_lock: RenameLock::new(),
            watches: WatchRegistry::new(),
            lock_graph: LockGraph::new(),
            observers: Observers::default(),
            cache: CacheStats::new(),
            unmapped: Unmapped::new(),
            reclaim: Reclaim::new(memory),
            names: ShardedCounter::new(),
            quotas: Quotas::new(),
            store,
            behind,
            through,
            registration: Registration::new()?,
        })
    }

    /// Checks that the file system was not revoked.
    ///
    /// # Errors
    /// `EIO` if it was.
    #[inline]
    pub(crate) fn alive(&self) -> Result<()> {
        if self.policy.revoked() {
            return Err(Errno::EIO);
        }
        Ok(())
    }

    /// Checks that changes are possible.
    ///
    /// # Errors
    /// `EROFS` when mounted read-only, or after the store failed; `EIO` when revoked.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.policy.allows_changes() && !self.failure.is_latched() {
            return Ok(());
        }
        self.alive()?;
        Err(Errno::EROFS)
    }

    /// The store, if others may change it.
    #[inline]
    pub(crate) fn shared(&self) -> Option<SharedStore<'_>> {
        let coherence = self.coherence.as_deref()?;
        let store = self.store.shared()?;
        Some(SharedStore { coherence, store })
    }

    /// Does a call with such a change wait until it is durable?
    pub(crate) fn waits_for(&self, scope: Scope) -> bool {
        self.policy.sync() || scope == Scope::Names && self.policy.dirsync()
    }
}

/// The error for a name that was not found: a revoked file system has no names, so it is not
/// `ENOENT`.
#[inline]
pub(crate) fn no_entry(core: &Core) -> Errno {
    core.alive().err().unwrap_or(Errno::ENOENT)
}
