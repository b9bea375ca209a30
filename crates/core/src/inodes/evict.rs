//! Eviction: orphans are freed with their last reference, other inodes when memory is needed.

use holdfast_sync::{Freeing, Ref};

use super::{InodeWalk, Take, Visit};
use crate::core::Core;
use crate::inode::{Inode, Numbered as _, Object, Set, kept_values};
use crate::locks::InodeLocks;
use crate::log_order;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Change, Intent, Space, kept_bytes};
use crate::types::{FileType, Ino, Result};
use crate::watch::EventMask;
use holdfast_cache::Space as _;

/// An unlinked inode that is being freed: it is unreferenced, and a lookup of its number waits.
///
/// If it is dropped before `finish_free`, the next eviction scan finds the inode again.
pub(crate) struct FreeingOrphan {
    freeing: Freeing<Object>,
    /// Pages of its content that only the store knows of.
    stored: u64,
}

impl FreeingOrphan {
    pub(crate) fn inode(&self) -> &Inode {
        &self.freeing
    }
}

/// Inodes that an evicting walk takes at once.
const BATCH: usize = 64;

/// What [`FileSystem::drop_caches`](crate::FileSystem::drop_caches) evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Inodes.
    pub inodes: u64,
    /// Names in the directories among them.
    pub names: u64,
}

impl Core {
    /// Drops a reference; the last one of a marked inode frees it.
    #[inline]
    pub(crate) fn put(&self, node: Node) {
        if let Some(freeing) = node.into_inner().and_then(Ref::release) {
            self.end(freeing);
        }
    }

    /// Is this inode one of this file system? An inode that is being freed stays in the index so
    /// long.
    pub(crate) fn holds(&self, inode: &Inode) -> bool {
        let guard = holdfast_sync::epoch::pin();
        let held = self.index.peek(inode.key(), &guard);
        held.is_some_and(|held| std::ptr::eq(held, inode))
    }

    /// Evicts an unreferenced inode; an orphan is freed with all it holds.
    pub(crate) fn end(&self, freeing: Freeing<Object>) {
        hop!();
        self.end_locks(&freeing);
        if freeing.nlink() == 0 {
            // Freeing counts as a use, as in `begin_free`.
            freeing.note_first_use(&self.reclaim.epochs);
            self.free_orphan(&freeing);
        } else {
            if freeing.is_unused_readahead() {
                self.readahead.wasted.add(1);
            }
            self.unload(&freeing);
        }
        self.free(freeing);
    }

    fn end_locks(&self, inode: &Inode) {
        if let Some(locks) = inode.locks() {
            // Locks that their owners never released. There is no waiter: it would hold a
            // reference.
            locks.end(&self.lock_graph);
        }
    }

    /// Begins to free an unlinked inode. The caller submits the change, and then calls
    /// `finish_free`.
    pub(crate) fn begin_free(&self, freeing: Freeing<Object>) -> FreeingOrphan {
        // Asked before the free: afterwards the store does not know the inode.
        let stored = self.stored_alone(&freeing);
        // Freeing counts as a use.
        freeing.note_first_use(&self.reclaim.epochs);
        FreeingOrphan { freeing, stored }
    }

    /// Completes an inode that the store has freed.
    pub(crate) fn finish_free(&self, begin_free: FreeingOrphan) {
        let FreeingOrphan { freeing, stored } = begin_free;
        self.end_locks(&freeing);
        self.clear_orphan(&freeing, stored);
        self.free(freeing);
    }

    fn free(&self, freeing: Freeing<Object>) {
        hop!();
        if freeing.is_main() {
            self.reclaim.main.add(-1);
        }
        let ino = freeing.ino();
        let mut evictions = self.evictions.lock(ino);
        // Last: a concurrent lookup of the number waits for this, and then finds the final state.
        evictions.free(&self.index, freeing);
        if self.coherence.is_some() {
            self.let_go(ino, evictions.is_used(ino));
        }
    }

    fn free_orphan(&self, orphan: &Inode) {
        self.clear_orphan(orphan, self.stored_alone(orphan));
        if self.through.is_some() {
            // The store learns from `let_go` that the inode is no longer referenced.
            return;
        }
        // An orphan that could not be freed is found again when the store is opened: the error is
        // dropped.
        let ended = Intent {
            ended: 1,
            ..Intent::giving_back()
        };
        if let Ok(transaction) = self.decide(&ended) {
            let change = [Change::Free { ino: orphan.ino() }];
            let _ = transaction.commit(log_order::take::<Inode, 0>([]), &change);
        }
    }

    /// Pages of a file's content that only the store knows of, if the space counters need them.
    fn stored_alone(&self, orphan: &Inode) -> u64 {
        let is_file = orphan.kind() == FileType::Regular;
        if self.frees || !is_file || orphan.is_mapped() {
            return 0;
        }
        if let Some(pages) = orphan.known_unmapped_pages() {
            return pages;
        }
        if orphan.size() == 0 {
            return 0;
        }
        self.stored_pages(orphan.ino()).unwrap_or(0)
    }

    /// Releases everything that an orphan holds except its record in the store.
    fn clear_orphan(&self, orphan: &Inode, stored: u64) {
        let ino = orphan.ino();
        self.watches.notify(ino, EventMask::DELETE_SELF, None, 0);
        self.watches.gone(ino);
        self.detach(orphan);
        if let Ok(pages) = orphan.regular()
            && !(pages.is_empty() && stored == 0)
        {
            let space = self.space_of(orphan, Check::Nothing);
            pages.lock().clear(space.account());
            // Content that was never loaded takes space in the store all the same. If the store
            // cannot report how much, it stays counted.
            space.release(stored);
        }
        self.release_inode(orphan);
    }

    /// Releases what a linked inode holds in memory: the store has it, or its file system was
    /// revoked and it can never be reached again.
    fn unload(&self, inode: &Freeing<Object>) {
        hop!();
        if self.pinned {
            self.release_unreachable(inode);
        }
        self.forget_names(inode);
        // An access time may have moved since the last sync. The write is tried once: a failed
        // store has stopped its writers.
        let _ = self.write_time(inode);
        if let Ok(pages) = inode.regular()
            && !pages.is_empty()
        {
            // The bytes keep their space in the store.
            pages.lock().clear(self.loaded());
        }
    }

    /// Releases the space of a linked inode that no store has: its file system was revoked.
    fn release_unreachable(&self, inode: &Inode) {
        self.detach(inode);
        if let Ok(pages) = inode.regular() {
            pages
                .lock()
                .clear(self.space_of(inode, Check::Nothing).account());
        }
        self.release_names(inode);
        self.release_inode(inode);
    }

    /// Releases the space of a directory's names.
    pub(crate) fn release_names(&self, inode: &Inode) {
        if let Ok(body) = inode.directory() {
            let _names = body.names.write();
            let guard = holdfast_sync::epoch::pin();
            let names = body.names.after(0, &guard);
            let bytes = names.map(|(name, _)| kept_bytes(name.len()));
            self.behind.release(Space {
                bytes: bytes.sum(),
                ..Space::default()
            });
        }
    }

    /// Releases the inode's space beside pages and names.
    fn release_inode(&self, inode: &Inode) {
        self.behind.release(Space {
            pages: 0,
            inodes: 1,
            bytes: kept_values(inode),
        });
    }

    /// Drops the names of a directory from memory, if the inode is one.
    pub(crate) fn forget_names(&self, inode: &Inode) {
        hop!();
        if let Ok(body) = inode.directory() {
            let mut names = body.names.write();
            self.names.add(-i64::from(body.names.cached()));
            // After a revocation nothing is loaded again, though the directory may still be
            // referenced.
            names.forget(!self.policy.revoked());
            self.names.add(names.recount());
        }
    }

    /// May the inode be evicted? File locks keep it, unless the file system was revoked.
    fn is_evictable(&self, inode: &Inode) -> bool {
        inode.ino() != Ino::ROOT
            && (self.policy.revoked() || inode.locks().is_none_or(InodeLocks::is_empty))
    }

    /// Marks an unreferenced inode as freeing. References by number do not prevent that if it is
    /// linked: a load restores them. An unlinked inode could not be loaded, and stays for them.
    fn begin_evict(&self, inode: &Inode) -> Option<Freeing<Object>> {
        hop!();
        let freeing = self.index.begin_evict_though_held(inode)?;
        match freeing.nlink() {
            0 => freeing.unless_held(),
            _ => Some(freeing),
        }
    }

    /// Frees the orphans that the store would otherwise keep, before the file system is dropped.
    pub(crate) fn free_unreachable(&self) {
        self.free_orphans();
    }

    /// Frees all orphans: none can be reached any more, though open files or nodes may still refer
    /// to them.
    fn free_orphans(&self) {
        self.in_shards(|range| {
            // The unchecked iterator: a referenced orphan has to be freed too, as no `put` will
            // follow.
            self.scan_inodes(range, &mut |inode| {
                if inode.nlink() == 0 {
                    self.free_orphan(inode);
                }
            });
        });
    }

    /// Evicts the unreferenced inodes in this range, and drops the cached content of the others.
    pub(crate) fn drop_range(&self, range: (u64, u64)) -> Dropped {
        let dropped = self.evict_unused(range);
        self.forget_all(InodeWalk::range(range.0, range.1));
        dropped
    }

    /// Evicts all unreferenced inodes in this range, except the root.
    pub(crate) fn evict_unused(&self, range: (u64, u64)) -> Dropped {
        self.evict(range, &mut { u64::MAX }, None).1
    }

    /// Evicts unreferenced inodes in this range, until so many were scanned. Of a set only those
    /// that were not used since the last scan, and lose no information. Returns where to continue,
    /// unless at the end.
    pub(crate) fn evict(
        &self,
        range: (u64, u64),
        most: &mut u64,
        set: Option<Set>,
    ) -> (Option<u64>, Dropped) {
        hop!();
        let mut dropped = Dropped::default();
        let mut next = Some(range.0);
        while let Some(from) = next.filter(|_| *most > 0) {
            let victims;
            (next, victims) = self.victims((from, range.1), most, set);
            for freeing in victims {
                dropped.inodes += 1;
                if let Ok(body) = freeing.directory() {
                    dropped.names += u64::from(body.names.cached());
                }
                self.end(freeing);
            }
        }
        (next, dropped)
    }

    /// Marks a batch of such inodes as freeing.
    fn victims(
        &self,
        range: (u64, u64),
        most: &mut u64,
        set: Option<Set>,
    ) -> (Option<u64>, Vec<Freeing<Object>>) {
        hop!();
        let mut victims = Vec::with_capacity(BATCH);
        // The unchecked iterator: a reference would prevent the eviction.
        let guard = holdfast_sync::epoch::pin();
        let next = self.index.scan(range.0, range.1, &guard, |inode| {
            victims.extend(self.victim(inode, set));
            *most -= 1;
            *most > 0 && victims.len() < BATCH
        });
        (next, victims)
    }

    /// Marks an inode as freeing, if it is to be evicted.
    fn victim(&self, inode: &Inode, set: Option<Set>) -> Option<Freeing<Object>> {
        let is_idle = |set| self.reclaim.is_idle(inode, set);
        if !self.is_evictable(inode) || !set.is_none_or(is_idle) {
            return None;
        }
        let freeing = self.begin_evict(inode)?;
        // Rechecked in the freeing state, in which no file lock can be taken. Not for an unlinked
        // inode: a concurrent last FORGET relies on this thread to free it.
        let goes = freeing.nlink() == 0
            || self.is_evictable(&freeing)
                && set.is_none_or(|set| self.reclaim.can_go(&freeing, set));
        goes.then_some(freeing)
    }

    /// Submits the access times that `lazytime` kept back.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn write_times(&self) -> Result<()> {
        let has_lazy_time = |inode: &Inode| Take::from(inode.has_lazy_time());
        let walk = || {
            self.walk_inodes_if(&mut InodeWalk::new(), has_lazy_time, &mut |node| {
                self.write_time(node.inode())?;
                Ok(Visit::Continue)
            })
        };
        self.lazytime.write(walk)
    }

    /// Submits the access time of one inode, if it was kept back.
    ///
    /// # Errors
    /// The store's; the time is then kept back again.
    pub(crate) fn write_time(&self, inode: &Inode) -> Result<()> {
        if !inode.take_lazytime() {
            return Ok(());
        }
        let begun = self.decide(&Intent::giving_back().records(1));
        let written = begun.and_then(|transaction| {
            let order = log_order::take([inode]);
            let record = inode.record(&inode.meta());
            transaction.commit(order, &[Change::Attributes { inode: record }])
        });
        if written.is_err() {
            inode.mark_lazy_time();
            self.lazytime.note();
        }
        written
    }
}
