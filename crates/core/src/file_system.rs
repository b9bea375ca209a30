//! One file system: the inode table, the store behind it, and the common parts of all operations.
//!
//! *Locking.* `rename_lock` comes first, and only in renames between two directories; then the
//! locks of inodes; the inode table's shards, watch queues and the store come last. The whole order
//! is in `docs/locking.md`.

use holdfast_cache::CacheStats;
use holdfast_cache::memory::Memory;
use holdfast_sync::{Index, Prepared, ShardedCounter, epoch};
use once_cell::race::OnceBox;
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::coherence::Coherence;
use crate::evictions::Evictions;
use crate::inode::{Content, ContentState, Extension, Meta, Numbered as _, Object};
use crate::lazytime::Lazytime;
use crate::locks::LockGraph;
use crate::node::Node;
use crate::numbers::Numbers;
use crate::observer::Observer;
use crate::options::Options;
use crate::policy::Policy;
use crate::quota::{Check, Quotas};
use crate::readahead::Readahead;
use crate::reclaim::Reclaim;
use crate::registry::{Registration, RouteGuard};
use crate::rename_lock::RenameLock;
use crate::store::{
    Behind, Change, Failure, Intent, MemoryLimits, MemoryStore, NothingBehind, Store, Through,
    Writes,
};
use crate::types::{Errno, FileType, Ino, Result};
use crate::unmapped::Unmapped;
use crate::watch::WatchRegistry;
use crate::{clock, inode};

/// A store with a larger number is corrupt: so many are never allocated.
const INO_MAX: u64 = 1 << 62;

/// A file system: a handle that is cheap to clone.
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) core: Arc<Core>,
    /// Dropped with the last handle.
    pub(crate) route: Arc<RouteGuard>,
}

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
    pub(crate) observer: RwLock<Option<Arc<dyn Observer>>>,
    pub(crate) observed: AtomicBool,
    pub(crate) cache: CacheStats,
    /// Requests to the store about files that are not mapped.
    pub(crate) unmapped: Unmapped,
    pub(crate) reclaim: Reclaim,
    pub(crate) names: ShardedCounter,
    pub(crate) quotas: Quotas,
    /// Its entry in the registry of instances. Dropped last: inodes contain its number.
    pub(crate) registration: Registration,
}

impl FileSystem {
    /// A file system over a store. A store without a root gets one, with the attributes of the
    /// options.
    ///
    /// # Errors
    /// Those of the store; `EUCLEAN` when its root is not a directory. `EINVAL` for a store that is
    /// written through and not shared.
    pub fn new(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let memory = Memory::of_process();
        if options.memory.is_some() {
            memory.set(options.memory);
        }
        Self::within(store, options, Arc::clone(memory))
    }

    /// Like [`new`](Self::new), within a memory budget of its own: [`Options::memory`] is ignored.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn within(store: Arc<dyn Store>, options: Options, memory: Arc<Memory>) -> Result<Self> {
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
        let core = Arc::new(Core {
            pinned: guarantees.pinned,
            frees: guarantees.frees,
            small: guarantees.small,
            policy: Policy::of(&options, guarantees.pinned),
            options: RwLock::new(options),
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
            observer: RwLock::new(None),
            observed: AtomicBool::new(false),
            cache: CacheStats::new(),
            unmapped: Unmapped::new(),
            reclaim: Reclaim::new(memory),
            names: ShardedCounter::new(),
            quotas: Quotas::new(),
            store,
            behind,
            through,
            registration: Registration::new()?,
        });
        if core.coherence.as_ref().is_some_and(|it| it.is_dated()) {
            core.policy.dated();
            core.hear_of_changes();
        }
        if !core.pinned {
            core.store.join(&core.reclaim.memory);
            core.join_memory();
        }
        let route = core.registration.publish(Arc::downgrade(&core));
        let fs = Self {
            core,
            route: Arc::new(route),
        };
        let root = match fs.core.node(Ino::ROOT) {
            Ok(root) if root.kind() == FileType::Directory => root,
            Ok(_) => return Err(Errno::EUCLEAN),
            Err(Errno::ESTALE) => fs.core.make_root(&options)?,
            Err(error) => return Err(error),
        };
        // There is none yet.
        let _ = fs.core.root.set(Box::new(root));
        Ok(fs)
    }

    /// A file system in memory, within these limits.
    ///
    /// # Panics
    /// Never: a memory store refuses only inodes beyond its limit, and the root is not counted
    /// against a limit of 0.
    #[must_use]
    pub fn memory(limits: MemoryLimits, options: Options) -> Self {
        let limits = MemoryLimits {
            inodes: limits.inodes.map(|inodes| inodes.max(1)),
            ..limits
        };
        Self::new(Arc::new(MemoryStore::new(limits)), options)
            .expect("a memory store makes room for its root")
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> Options {
        *self.core.options.read()
    }

    /// Changes the options (a remount). Those of the root directory have no effect.
    pub fn set_options(&self, options: Options) {
        let mut held = self.core.options.write();
        self.core.policy.set(&options);
        if options.memory.is_some() {
            self.core.reclaim.memory.set(options.memory);
        }
        *held = options;
    }

    /// The root directory.
    ///
    /// # Panics
    /// Never: the root is referenced from the start.
    #[must_use]
    pub fn root(&self) -> Node {
        self.core
            .root
            .get()
            .cloned()
            .expect("the root is always there")
    }

    /// The inode with this number.
    ///
    /// # Errors
    /// `ESTALE` if there is none (any more); errors of the store.
    pub fn node(&self, ino: Ino) -> Result<Node> {
        let added = self.core.added_so_far();
        let node = self.core.node(ino);
        self.core.shrink_inodes_since(added);
        node
    }

    /// Makes all earlier changes durable, as far as the store can (syncfs(2)).
    ///
    /// # Errors
    /// `EIO` when it could not.
    pub fn sync(&self) -> Result<()> {
        self.core.alive()?;
        self.core.write_times()?;
        self.core.store.commit(None)
    }

    /// Ends a file system at unmount: makes everything durable that only this file system can
    /// write, and notifies all watchers. Handles that are still held go on working. A revoked file
    /// system is closed, too: operations that ended since then are durable afterwards.
    ///
    /// # Errors
    /// `EIO` when it could not be made durable; the watchers are notified all the same.
    pub fn close(&self) -> Result<()> {
        let synced = self.core.make_durable();
        self.core.watches.release_all();
        synced
    }
}

impl Core {
    /// Hands over deferred changes, and makes everything durable. A store that is written through
    /// has all of them already, and may not answer any more.
    pub(crate) fn make_durable(&self) -> Result<()> {
        if self.through.is_some() {
            return Ok(());
        }
        self.write_times()?;
        self.store.commit(None)
    }

    fn make_root(&self, options: &Options) -> Result<Node> {
        let mut transaction = self.decide(&Intent {
            inodes: 1,
            ..Intent::default()
        })?;
        let mut meta = Meta::new(
            options.root_perm & 0o7777,
            options.root_uid.unwrap_or(0),
            options.root_gid.unwrap_or(0),
            clock::now(),
        );
        meta.nlink = 2;
        meta.size = inode::directory_size(0);
        let content = Content::of(FileType::Directory, Ino::ROOT, 0, None);
        let extension = Extension::of(content, None);
        let fs = self.registration.number();
        let root = Object::new(fs, FileType::Directory, &meta, extension, ContentState::All);
        let root = Prepared::new(root);
        let root = self.publish(Ino::ROOT, root, Check::Nothing, transaction.reservation())?;
        let record = root.inode().record(&root.inode().meta());
        let create = Change::Create {
            inode: record,
            target: None,
        };
        transaction.commit(self.log_order([]), &[create])?;
        Ok(root)
    }

    /// The inode with this number, loaded if necessary.
    pub(crate) fn node(&self, ino: Ino) -> Result<Node> {
        match self.node_in_memory(ino)? {
            Some(node) => Ok(node),
            None => self.load(ino, false),
        }
    }

    /// The inode with this number, and references it; `None`: it has to be loaded.
    ///
    /// # Errors
    /// `ESTALE` if there is none; `EIO` if the file system was revoked.
    #[inline]
    pub(crate) fn node_in_memory(&self, ino: Ino) -> Result<Option<Node>> {
        self.alive()?;
        if let Some(inode) = self.index.get(ino.0) {
            let node = Node::new(inode);
            node.inode().touch(&self.reclaim.epochs);
            if node.inode().is_new() {
                return Err(Errno::ESTALE);
            }
            if node.inode().is_marked_freeing() {
                self.keep(&node);
            }
            return Ok(Some(node));
        }
        // Or it was evicted by a concurrent revocation.
        self.alive()?;
        Ok(None)
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
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
