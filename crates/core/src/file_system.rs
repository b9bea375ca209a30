//! One file system: the inode table, the store behind it, and what all operations share.
//!
//! *Locking.* `rename_lock` first of all, and only by renames between two directories; then the
//! locks of inodes; the inode table's shards, watch queues and the store come last. The whole
//! order stands in `docs/locking.md`.

use holdfast_cache::CacheStats;
use holdfast_cache::memory::Memory;
use holdfast_sync::{Index, Prepared, ShardedCounter, epoch};
use once_cell::race::OnceBox;
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::coherence::Coherence;
use crate::evictions::Evictions;
use crate::inode::{Content, Extension, Inode, Known, Meta, Numbered as _, Object};
use crate::lazytime::Lazytime;
use crate::locks::LockGraph;
use crate::log_order::{self, HasTurn as _, Taken};
use crate::node::Node;
use crate::numbers::Numbers;
use crate::observer::Observer;
use crate::options::{Options, Stats};
use crate::policy::Policy;
use crate::quota::{Check, Quotas};
use crate::readahead::Readahead;
use crate::reclaim::Reclaim;
use crate::registry::{Announced, Registration};
use crate::rename_lock::RenameLock;
use crate::space::FileSpace;
use crate::store::{
    Behind, Change, Failure, Grant, Intent, Lsn, MemoryLimits, MemoryStore, NothingBehind, PageOf,
    Reservation, Space, Store, Through, Writes, kept_bytes,
};
use crate::types::{Errno, FileType, Ino, NAME_MAX, Result, StatFs};
use crate::unmapped::Unmapped;
use crate::watch::WatchRegistry;
use crate::{clock, inode};

/// Beyond this number a store is taken for damaged: nobody deals so many.
const INO_MAX: u64 = 1 << 62;

/// Changes of a batch that is handed over without memory of its own.
const FEW: usize = 4;

/// A file system: a cheap handle, to be cloned at will.
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) core: Arc<Core>,
    /// The last handle takes it along.
    pub(crate) announced: Arc<Announced>,
}

/// What the handles of one file system share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    /// The same, as it is changed: behind memory, or (then nothing is behind) through to it.
    pub(crate) behind: Arc<dyn Behind>,
    pub(crate) through: Option<Arc<dyn Through>>,
    /// Nothing can be loaded, and changes are not handed over.
    pub(crate) pinned: bool,
    /// Space comes back with the changes that free it.
    pub(crate) frees: bool,
    /// Files up to this length have no page of their own in the store.
    pub(crate) small: u64,
    pub(crate) options: RwLock<Options>,
    /// The part of the options that every operation asks for, without a lock.
    pub(crate) policy: Policy,
    /// The store's: no more changes.
    pub(crate) failure: Arc<Failure>,
    /// All inodes in memory.
    pub(crate) index: Index<Object>,
    /// The root, in use as long as this is.
    pub(crate) root: OnceBox<Node>,
    pub(crate) numbers: Numbers,
    /// What keeps loads from bringing back the past.
    pub(crate) evictions: Evictions,
    /// Of a store that others may change, and that numbers its inodes.
    pub(crate) coherence: Option<Box<Coherence>>,
    pub(crate) readahead: Readahead,
    /// Access times that have not reached the store.
    pub(crate) lazytime: Lazytime,
    /// Held by a rename between directories.
    pub(crate) rename_lock: RenameLock,
    pub(crate) watches: WatchRegistry,
    pub(crate) lock_graph: LockGraph,
    pub(crate) observer: RwLock<Option<Arc<dyn Observer>>>,
    pub(crate) observed: AtomicBool,
    pub(crate) cache: CacheStats,
    /// What the store is asked about files that are not mapped.
    pub(crate) unmapped: Unmapped,
    pub(crate) reclaim: Reclaim,
    pub(crate) names: ShardedCounter,
    pub(crate) quotas: Quotas,
    /// How orphans find their way back here. The last to go: inodes carry its number.
    pub(crate) registration: Registration,
}

impl FileSystem {
    /// A file system over a store. A store without a root gets one, as the options say.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its root is not a directory; `EINVAL` for one that is written through and not shared.
    pub fn new(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let memory = Memory::of_process();
        if options.memory.is_some() {
            memory.set(options.memory);
        }
        Self::within(store, options, Arc::clone(memory))
    }

    /// As [`new`](Self::new), within a memory of its own: [`Options::memory`] is not looked at.
    ///
    /// # Errors
    /// As [`new`](Self::new).
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
        // Before there are threads of its own.
        epoch::prepare();
        let core = Arc::new(Core {
            pinned: guarantees.pinned,
            frees: guarantees.frees,
            small: guarantees.small,
            policy: Policy::of(&options),
            options: RwLock::new(options),
            failure: store.failure(),
            index: Index::new(),
            root: OnceBox::new(),
            numbers: if guarantees.pinned {
                Numbers::scattered_after(last)
            } else {
                Numbers::after(last)
            },
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
        let announced = core.registration.announce(Arc::downgrade(&core));
        let fs = Self {
            core,
            announced: Arc::new(announced),
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

    /// Changes the options (a remount). Those of the root directory have no effect any more.
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
    /// Never: the root is in use from the start.
    #[must_use]
    pub fn root(&self) -> Node {
        self.core
            .root
            .get()
            .cloned()
            .expect("the root is always there")
    }

    /// The inode of this number.
    ///
    /// # Errors
    /// `ESTALE` if there is none (any more); what the store answers.
    pub fn node(&self, ino: Ino) -> Result<Node> {
        let added = self.core.added_so_far();
        let node = self.core.node(ino);
        self.core.shrink_inodes_since(added);
        node
    }

    /// Counts of what is held in memory.
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
            statahead_used: count(&core.reclaim.epochs.met),
            statahead_wasted: count(&core.readahead.wasted),
            promoted: count(&core.reclaim.promoted),
            refaults: count(&core.reclaim.ghosts.refaults),
            content_refaults: count(&core.reclaim.content_ghosts.refaults),
        }
    }

    /// The memory that this file system shares with others. `None`: all there is is in memory alone.
    #[must_use]
    pub fn memory_in_use(&self) -> Option<&Arc<Memory>> {
        (!self.core.pinned).then_some(&self.core.reclaim.memory)
    }

    /// What statfs(2) tells. A store without a limit shows the machine's memory as its size.
    ///
    /// # Errors
    /// What the store answers.
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

    /// Ends the passing of logical time by the clock, which writes once a second: for an audit that lets a second pass
    /// between any two instructions.
    #[doc(hidden)]
    pub fn hold_epochs(&self) {
        self.core.reclaim.epochs.hold();
    }

    /// Makes everything done so far durable, as far as the store can (syncfs(2)).
    ///
    /// # Errors
    /// `EIO` when it could not.
    pub fn sync(&self) -> Result<()> {
        self.core.alive()?;
        self.core.write_times()?;
        self.core.store.commit(None)
    }

    /// Ends what outlives no unmount: makes everything durable that is this file system's alone to write, tells all watchers that the file
    /// system goes. Handles that are still held go on working. A revoked file system is closed, too: what
    /// ended since then is durable afterwards.
    ///
    /// # Errors
    /// `EIO` when it could not be made durable; the watchers are told all the same.
    pub fn close(&self) -> Result<()> {
        let synced = self.core.make_durable();
        self.core.watches.release_all();
        synced
    }

    /// May calls wait for a device? Then a front end keeps them off threads that must not.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.core.store.guarantees().blocks
    }

    /// Is its store asked by name, inode by inode, because others may change it ([`Shared`](crate::store::Shared))? Then
    /// attributes that nobody needs may cost an answer from far away each.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.core.coherence.is_some()
    }

    /// Is a front end that read this inode, or a name of this directory, since then told as well when others change it
    /// ([`Coherence::Told`](crate::store::Coherence::Told))? Then it may keep what it read for as long as such answers hold.
    /// `since` is from before it began to read.
    #[must_use]
    pub fn is_heard(&self, ino: Ino, since: Instant) -> bool {
        let shared = self.core.shared();
        shared.is_some_and(|shared| shared.coherence.is_heard(ino, since, shared.now()))
    }
}

/// The machine's memory in pages: what a store without a limit can hold at most.
pub(crate) fn memory_pages() -> u64 {
    let info = rustix::system::sysinfo();
    let unit = u64::from(info.mem_unit).max(1);
    (info.totalram as u64).saturating_mul(unit) / 4096
}

impl Core {
    /// Hands over what was kept back, and has the store make everything durable. A store that is written through has all, and outlives
    /// this; it may not answer any more.
    pub(crate) fn make_durable(&self) -> Result<()> {
        if self.through.is_some() {
            return Ok(());
        }
        self.write_times()?;
        self.store.commit(None)
    }

    fn make_root(&self, options: &Options) -> Result<Node> {
        let mut reservation = self.reserve(&Intent {
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
        let root = Object::new(fs, FileType::Directory, &meta, extension, Known::All);
        let root = Prepared::new(root);
        let root = self.publish(Ino::ROOT, root, Check::Nothing, &mut reservation)?;
        if !self.pinned {
            let record = root.inode().record(&root.inode().meta());
            self.apply(
                &mut reservation,
                [],
                &[Change::Create {
                    inode: record,
                    target: None,
                }],
            )?;
        }
        Ok(root)
    }

    /// The inode of this number, loaded if need be.
    pub(crate) fn node(&self, ino: Ino) -> Result<Node> {
        match self.node_in_memory(ino)? {
            Some(node) => Ok(node),
            None => self.load(ino, false),
        }
    }

    /// The inode of this number, which is used now; `None`: it has to be loaded.
    ///
    /// # Errors
    /// `ESTALE` if there is none; `EIO` if all were revoked.
    #[inline]
    pub(crate) fn node_in_memory(&self, ino: Ino) -> Result<Option<Node>> {
        self.alive()?;
        if let Some(inode) = self.index.get(ino.0) {
            let node = Node::new(inode);
            node.inode().touch(&self.reclaim.epochs);
            if !self.pinned && node.inode().is_unborn() {
                return Err(Errno::ESTALE);
            }
            if node.inode().is_marked_freeing() {
                self.keep(&node);
            }
            return Ok(Some(node));
        }
        if self.pinned {
            // Or it went with all the others just now.
            self.alive()?;
            return Err(Errno::ESTALE);
        }
        Ok(None)
    }

    /// Was it not revoked?
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

    /// May anything be changed?
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

    /// Asks the store for what an operation may need, before it changes anything.
    ///
    /// # Errors
    /// Those of [`Behind::reserve`].
    #[inline]
    pub(crate) fn reserve(&self, intent: &Intent) -> Result<Reservation<'_>> {
        Reservation::of(&*self.behind, intent)
    }

    /// As [`Core::reserve`], for what adds nothing that a store in memory counts.
    ///
    /// # Errors
    /// Those of [`Behind::reserve`].
    #[inline]
    pub(crate) fn reserve_change(
        &self,
        intent: impl FnOnce() -> Intent,
    ) -> Result<Reservation<'_>> {
        if self.pinned {
            return Ok(Reservation::none());
        }
        self.reserve(&intent())
    }

    /// Where the pages of a file come from and go to. `check`: do limits count for the caller that asks for pages?
    #[inline]
    pub(crate) fn space_of<'f>(&'f self, inode: &'f Inode, check: Check) -> FileSpace<'f> {
        FileSpace::new(&self.quotas, &*self.behind, &self.cache, inode, check)
    }

    /// Gives back what a name, a value or a target of this length took of a store in memory.
    #[inline]
    pub(crate) fn release_kept(&self, len: usize) {
        if self.pinned {
            self.behind.release(Space {
                bytes: kept_bytes(len),
                ..Space::default()
            });
        }
    }

    /// Hands one operation's changes to the store, with what was reserved for them; waits for them
    /// with the option `sync`, and for changes of names with `dirsync`. `whose`: the inodes whose
    /// attributes are among the changes, but for new ones.
    ///
    /// # Errors
    /// What the store answers; from then on nothing can be changed.
    pub(crate) fn apply<const N: usize>(
        &self,
        reservation: &mut Reservation<'_>,
        whose: [&Inode; N],
        batch: &[Change<'_>],
    ) -> Result<()> {
        self.apply_in(self.log_order(whose), reservation, whose, batch)
    }

    /// As [`Core::apply`], by a caller that has [the turns](Self::log_order) of these inodes already.
    ///
    /// # Errors
    /// Those of `apply`.
    pub(crate) fn apply_in<const N: usize>(
        &self,
        log_order: Option<Taken<'_, N>>,
        reservation: &mut Reservation<'_>,
        whose: [&Inode; N],
        batch: &[Change<'_>],
    ) -> Result<()> {
        if self.pinned {
            reservation.keep();
            return Ok(());
        }
        if batch.is_empty() {
            return Ok(());
        }
        let held = reservation.held();
        let scope = match self.policy.dirsync() {
            true => Scope::of(batch),
            false => Scope::Inodes,
        };
        self.in_log_order(log_order, scope, || {
            hand_over(&whose, batch, |batch| self.behind.apply(held, batch))
        })
    }

    /// Takes the turns of these inodes, to hand over their attributes; before what these say with another change (a size, a
    /// count of links) changes in memory: see [`log_order`]. `None` with a store that pins everything, which is told nothing.
    #[inline]
    pub(crate) fn log_order<'t, const N: usize>(
        &self,
        whose: [&'t Inode; N],
    ) -> Option<Taken<'t, N>> {
        (!self.pinned).then(|| log_order::take(whose))
    }

    /// As [`Core::apply`], by `hand_over`, which finds out what the attributes are in [these
    /// turns](Self::log_order). `scope`: what the changes are about. Not for stores that pin
    /// everything.
    ///
    /// # Errors
    /// Those of `apply`.
    pub(crate) fn in_log_order<const N: usize>(
        &self,
        log_order: Option<Taken<'_, N>>,
        scope: Scope,
        hand_over: impl FnOnce() -> Result<Lsn>,
    ) -> Result<()> {
        let handed_over = hand_over();
        drop(log_order);
        self.settle(handed_over, scope)
    }

    /// As [`Core::apply_in`], for writes to a file whose pages the store may keep. The caller has it locked.
    ///
    /// # Errors
    /// Those of `apply`.
    pub(crate) fn apply_written(
        &self,
        turn: Option<Taken<'_, 1>>,
        held: &mut Grant,
        whose: &Inode,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<()> {
        if self.pinned || batch.is_empty() {
            return Ok(());
        }
        let written = |batch: &[Change<'_>]| self.accept_written(held, batch, page);
        self.in_log_order(turn, Scope::Inodes, || hand_over(&[whose], batch, written))
    }

    /// Hands writes to one file over: a store that can keeps its pages, any other copies what was written.
    ///
    /// # Errors
    /// Those of [`Behind::apply`].
    #[inline]
    pub(crate) fn accept_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Lsn> {
        match self.store.pages() {
            Some(pages) => pages.apply_written(held, batch, page),
            None => self.behind.apply(held, batch),
        }
    }

    /// As [`Core::apply`], unless somebody else is at it with the same inode: then `false`, and
    /// nothing happened.
    ///
    /// # Errors
    /// Those of `apply`.
    pub(crate) fn apply_unless_busy(
        &self,
        reservation: &mut Reservation<'_>,
        whose: &Inode,
        batch: &[Change<'_>],
    ) -> Result<bool> {
        let Some(turn) = whose.turn().try_lock() else {
            return Ok(false);
        };
        let held = reservation.held();
        let handed_over = hand_over(&[whose], batch, |batch| self.behind.apply(held, batch));
        drop(turn);
        self.settle(handed_over, Scope::of(batch)).map(|()| true)
    }

    /// Does a call that changed this wait until it is durable?
    pub(crate) fn waits_for(&self, scope: Scope) -> bool {
        self.policy.sync() || scope == Scope::Names && self.policy.dirsync()
    }

    fn settle(&self, handed_over: Result<Lsn>, scope: Scope) -> Result<()> {
        let applied = handed_over.and_then(|lsn| {
            if self.waits_for(scope) {
                self.store.commit(Some(lsn))
            } else {
                Ok(())
            }
        });
        applied.inspect_err(|error| self.failure.latch(*error))
    }
}

/// What a batch of changes is about, as the options `sync` and `dirsync` tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Names come or go.
    Names,
    /// Attributes and content change.
    Inodes,
}

impl Scope {
    pub(crate) fn of(batch: &[Change<'_>]) -> Self {
        let is_name =
            |change: &Change<'_>| matches!(change, Change::Enter { .. } | Change::Leave { .. });
        match batch.iter().any(is_name) {
            true => Self::Names,
            false => Self::Inodes,
        }
    }
}

/// Hands changes over, with the attributes of this moment. The caller has the turns of `whose`.
fn hand_over(
    whose: &[&Inode],
    batch: &[Change<'_>],
    apply: impl FnOnce(&[Change<'_>]) -> Result<Lsn>,
) -> Result<Lsn> {
    if batch.iter().all(|change| is_latest(whose, change)) {
        return apply(batch);
    }
    let is_xattr = |change: &Change<'_>| matches!(change, Change::Xattr { .. });
    let values: Vec<_> = if batch.iter().any(is_xattr) {
        batch.iter().map(|change| value(whose, change)).collect()
    } else {
        Vec::new()
    };
    let latest = |(place, change)| latest(whose, change, values.get(place).unwrap_or(&None));
    if batch.len() <= FEW {
        // Nearly every batch: it needs no memory of its own.
        let few: [Change<'_>; FEW] = std::array::from_fn(|place| match batch.get(place) {
            Some(change) => latest((place, change)),
            None => Change::Free { ino: Ino(0) },
        });
        apply(&few[..batch.len()])
    } else {
        let batch: Vec<Change<'_>> = batch.iter().enumerate().map(latest).collect();
        apply(&batch)
    }
}

/// Does a change say what is so at this moment? Nearly always: then it need not be copied.
fn is_latest(whose: &[&Inode], change: &Change<'_>) -> bool {
    match change {
        Change::Attributes { inode: record } => {
            let inode = whose.iter().find(|inode| inode.ino() == record.ino);
            inode.is_some_and(|inode| inode.record(&inode.meta()) == *record)
        }
        Change::Xattr { .. } => false,
        _ => true,
    }
}

/// The value of this moment of the extended attribute that a change is about.
fn value(whose: &[&Inode], change: &Change<'_>) -> Option<Option<Arc<[u8]>>> {
    let Change::Xattr { ino, name, .. } = change else {
        return None;
    };
    let inode = whose.iter().find(|inode| inode.ino() == *ino)?;
    let guard = epoch::pin();
    Some(inode::value(inode.view(&guard).extra_attrs, name))
}

/// A change with the attributes of this moment. Changes of one inode's attributes are made one
/// after the other, but may come here in another order: whoever comes last must not bring
/// back what was before.
fn latest<'c>(
    whose: &[&Inode],
    change: &Change<'c>,
    value: &'c Option<Option<Arc<[u8]>>>,
) -> Change<'c> {
    match *change {
        Change::Attributes { inode: ref record } => {
            let inode = whose.iter().find(|inode| inode.ino() == record.ino);
            debug_assert!(inode.is_some(), "attributes without a turn");
            match inode {
                Some(inode) => Change::Attributes {
                    inode: inode.record(&inode.meta()),
                },
                None => change.clone(),
            }
        }
        Change::Xattr { ino, name, .. } if let Some(value) = value => Change::Xattr {
            ino,
            name,
            value: value.as_deref(),
        },
        _ => change.clone(),
    }
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
