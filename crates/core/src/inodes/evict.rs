//! Letting inodes go: orphans with their last use, others when their memory is wanted.

use std::cell::Cell;

use holdfast_sync::{Freeing, Ref};

use super::{InodeWalk, Take, Visit};
use crate::file_system::Core;
use crate::inode::{Inode, Look, Numbered as _, Object, Part, Set, kept_values};
use crate::locks::InodeLocks;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Change, Intent, Space, kept_bytes};
use crate::types::{FileType, Ino, Result};
use crate::watch::EventMask;
use holdfast_cache::Space as _;

/// An inode without names that ends: nobody uses it or can, and who asks for its number waits.
///
/// Dropped without being concluded it is found again by eviction.
pub(crate) struct Ending {
    freeing: Freeing<Object>,
    /// Pages of its content that are in the store alone.
    stored: u64,
}

impl Ending {
    pub(crate) fn inode(&self) -> &Inode {
        &self.freeing
    }
}

/// Inodes that an evicting walk takes at once.
const BATCH: usize = 64;

/// What [`FileSystem::drop_caches`](crate::FileSystem::drop_caches) let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Inodes.
    pub inodes: u64,
    /// Names, in the directories among them.
    pub names: u64,
}

impl Core {
    /// Gives a use back; the last use of a doomed inode ends it.
    #[inline]
    pub(crate) fn put(&self, node: Node) {
        if let Some(freeing) = node.into_inner().and_then(Ref::release) {
            self.end(freeing);
        }
    }

    /// As [`Core::put`], for the many of a walk.
    #[inline]
    pub(super) fn put_in_passing(&self, node: Node) {
        if let Some(freeing) = node.into_inner().and_then(Ref::release_inline) {
            self.end(freeing);
        }
    }

    /// Is this one of its inodes? One that is dying stays where it is for so long.
    pub(crate) fn holds(&self, inode: &Inode) -> bool {
        let guard = holdfast_sync::epoch::pin();
        let held = self.index.peek(inode.key(), &guard);
        held.is_some_and(|held| std::ptr::eq(held, inode))
    }

    /// Ends an inode that nobody uses: an orphan with all it holds, any other for as long as
    /// nobody asks for it.
    pub(crate) fn end(&self, freeing: Freeing<Object>) {
        self.end_locks(&freeing);
        if freeing.nlink() == 0 {
            // To end it is to use it, as in `ending`.
            freeing.meet(&self.reclaim.epochs);
            self.end_orphan(&freeing);
        } else {
            if freeing.is_unmet() {
                self.readahead.wasted.add(1);
            }
            self.unload(&freeing);
        }
        self.free(freeing);
    }

    fn end_locks(&self, inode: &Inode) {
        if let Some(locks) = inode.locks() {
            // Of owners that never released them; nobody waits without a use.
            locks.end(&self.lock_graph);
        }
    }

    /// An inode without names begins to end. Whoever has this tells the store, and concludes it then.
    pub(crate) fn ending(&self, freeing: Freeing<Object>) -> Ending {
        // Asked now: once it is free the store knows nothing of it.
        let stored = self.stored_alone(&freeing);
        // To end it is to use it.
        freeing.meet(&self.reclaim.epochs);
        Ending { freeing, stored }
    }

    /// Ends an inode that the store has freed.
    pub(crate) fn conclude(&self, ending: Ending) {
        let Ending { freeing, stored } = ending;
        self.end_locks(&freeing);
        self.clear_orphan(&freeing, stored);
        self.free(freeing);
    }

    fn free(&self, freeing: Freeing<Object>) {
        // Last: whoever asks for the number meanwhile waits, and then finds what is true.
        if self.pinned {
            self.index.free(freeing);
        } else {
            if freeing.is_main() {
                self.reclaim.main.add(-1);
            }
            let ino = freeing.ino();
            let mut evictions = self.evictions.lock(ino);
            evictions.free(&self.index, freeing);
            if self.coherence.is_some() {
                self.let_go(ino, evictions.is_used(ino));
            }
        }
    }

    fn end_orphan(&self, orphan: &Inode) {
        self.clear_orphan(orphan, self.stored_alone(orphan));
        if self.through.is_some() {
            // It hears that nobody knows the inode any more.
            return;
        }
        // An orphan that could not be freed is found again by the store: nothing to answer here.
        let ended = || Intent {
            ended: 1,
            ..Intent::giving_back()
        };
        if let Ok(mut reservation) = self.reserve_change(ended) {
            let _ = self.apply(&mut reservation, [], &[Change::Free { ino: orphan.ino() }]);
        }
    }

    /// Pages of a file's content of which only the store knows, if it has to be told of them.
    fn stored_alone(&self, orphan: &Inode) -> u64 {
        let is_file = orphan.kind() == FileType::Regular;
        if self.pinned || self.frees || !is_file || orphan.is_mapped() {
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

    /// Lets go of all that an inode without names has but its place in the store.
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
            // What was never loaded takes space in the store all the same. One that cannot tell
            // how much keeps it.
            space.release(stored);
        }
        self.release_inode(orphan);
    }

    /// Counts what goes with an inode that has names: the store holds it, or (a revoked file system
    /// in memory) nobody can reach it any more.
    fn unload(&self, inode: &Freeing<Object>) {
        self.forget_names(inode);
        // An access time can have moved since the others were handed over. (It is not worth more
        // than a try: a store that fails has stopped the writers.)
        if !self.pinned && inode.take_lazytime() {
            let record = inode.record(&inode.meta());
            if let Ok(mut reservation) = self.reserve(&Intent::giving_back().records(1)) {
                let change = [Change::Attributes { inode: record }];
                let _ = self.apply(&mut reservation, [&**inode], &change);
            }
        }
        if self.pinned {
            self.detach(inode);
        }
        if let Ok(pages) = inode.regular()
            && !pages.is_empty()
        {
            let mut pages = pages.lock();
            if self.pinned {
                let space = self.space_of(inode, Check::Nothing);
                pages.clear(space.account());
            } else {
                // The bytes keep their space in the store.
                pages.clear(self.loaded());
            }
        }
        if self.pinned {
            self.release_inode(inode);
        }
    }

    /// Gives back what an inode takes beside its pages and names.
    fn release_inode(&self, inode: &Inode) {
        self.behind.release(Space {
            pages: 0,
            inodes: 1,
            bytes: if self.pinned { kept_values(inode) } else { 0 },
        });
    }

    /// Empties a directory in memory alone, if the inode is one.
    pub(crate) fn forget_names(&self, inode: &Inode) {
        if let Ok(body) = inode.directory() {
            let mut names = body.names.write();
            if self.pinned {
                let guard = holdfast_sync::epoch::pin();
                let names = body.names.after(0, &guard);
                let bytes = names.map(|(name, _)| kept_bytes(name.len()));
                self.behind.release(Space {
                    bytes: bytes.sum(),
                    ..Space::default()
                });
            }
            self.names.add(-i64::from(body.names.in_catalog()));
            // Of what was revoked nothing is loaded any more, though somebody may still hold it.
            names.forget(!self.pinned && !self.policy.revoked());
            self.names.add(names.recount());
        }
    }

    /// May it be ended? Locks are kept for their owners, for as long as those can ask for them.
    fn is_evictable(&self, inode: &Inode) -> bool {
        inode.ino() != Ino::ROOT
            && (self.policy.revoked() || inode.locks().is_none_or(InodeLocks::is_empty))
    }

    /// The end of an inode without references. Uses by number are found again when it is loaded; without a
    /// name it could not be, and stays for them. Over a store that pins everything no inode can be loaded.
    fn begin_evict(&self, inode: &Inode) -> Option<Freeing<Object>> {
        if self.pinned {
            return self.index.begin_evict(inode);
        }
        let freeing = self.index.begin_evict_though_held(inode)?;
        match freeing.nlink() {
            0 => freeing.unless_held(),
            _ => Some(freeing),
        }
    }

    /// Ends what the store would keep for ever, before the inodes go.
    pub(crate) fn end_what_nobody_finds(&self) {
        // Memory goes with the inodes.
        if !self.pinned {
            self.end_orphans();
        }
    }

    /// Frees all orphans: nobody can reach them any more, though files may be open, or nodes held,
    /// whose file system is gone.
    fn end_orphans(&self) {
        self.in_shards(|range| {
            // The unsafe iterator: whoever has a use gives it back to nobody.
            self.scan_inodes(range, &mut |inode| {
                if inode.nlink() == 0 {
                    self.end_orphan(inode);
                }
            });
        });
    }

    /// Lets go of the inodes in this range that nobody uses; what is in use stays, without its bytes.
    pub(crate) fn drop_range(&self, range: (u64, u64)) -> Dropped {
        let dropped = self.evict_unused(range);
        self.forget_all(InodeWalk::range(range.0, range.1));
        dropped
    }

    /// Ends all inodes in this range that nobody uses, except the root.
    pub(crate) fn evict_unused(&self, range: (u64, u64)) -> Dropped {
        let mut dropped = Dropped::default();
        self.evict_while(range, &mut dropped, || true, |_| true, |_| true);
        dropped
    }

    /// Looks at so many inodes from this number on, and ends those of a set that nobody uses, that were not used since the last call for them, and
    /// of which nothing would be forgotten. Says where to go on, if that was not the end, and how many went.
    pub(crate) fn evict_some(&self, from: u64, most: u64, set: Set) -> (Option<u64>, u64) {
        let mut dropped = Dropped::default();
        let most_there = self.reclaim.inodes_max();
        let seen = Cell::new(0);
        let is_idle = |inode: &Inode| {
            let looked = inode.look(Part::Inode, set, &self.reclaim.epochs);
            if looked == Look::Promoted {
                self.reclaim.main.add(1);
                self.reclaim.promoted.add(1);
            }
            looked == Look::Idle
        };
        let may_go = |inode: &Inode| {
            let goes = !inode.has_space_of_its_own();
            if goes && set == Set::Probation {
                self.reclaim.ghosts.note(inode.key(), 1, most_there);
            }
            goes
        };
        let is_more = || {
            seen.set(seen.get() + 1);
            seen.get() < most
        };
        let next = self.evict_while((from, u64::MAX), &mut dropped, is_more, is_idle, may_go);
        (next, dropped.inodes)
    }

    /// Ends inodes in this range; says where it stopped. `is_idle` is asked first, of
    /// each; `may_go` of those that nobody uses; and then `is_more` whether it goes on behind this inode.
    fn evict_while(
        &self,
        range: (u64, u64),
        dropped: &mut Dropped,
        is_more: impl Fn() -> bool,
        is_idle: impl Fn(&Inode) -> bool,
        may_go: impl Fn(&Inode) -> bool,
    ) -> Option<u64> {
        let mut batch = Vec::with_capacity(BATCH);
        let (mut next, mut goes_on) = (Some(range.0), true);
        while let Some(from) = next.filter(|_| goes_on) {
            {
                // The unsafe iterator: a use would keep what is to go.
                let guard = holdfast_sync::epoch::pin();
                let (index, end) = (&self.index, range.1);
                next = index.scan_to_change(true, (from, end), &guard, |inode| {
                    if self.is_evictable(inode) && is_idle(inode) {
                        // Asked again, now that nobody can lock it any more; else it lives on. Not what has no name: its last
                        // FORGET may have come by meanwhile, and left it to this.
                        let goes = |it: &Freeing<Object>| {
                            it.nlink() == 0 || self.is_evictable(it) && may_go(it)
                        };
                        let freeing = self.begin_evict(inode);
                        batch.extend(freeing.filter(goes));
                    }
                    goes_on = is_more();
                    goes_on && batch.len() < BATCH
                });
            }
            for freeing in batch.drain(..) {
                dropped.inodes += 1;
                if let Ok(body) = freeing.directory() {
                    dropped.names += u64::from(body.names.in_catalog());
                }
                self.end(freeing);
            }
        }
        next
    }

    /// Hands over the access times that `lazytime` kept back.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn write_times(&self) -> Result<()> {
        if self.pinned {
            // Nobody is told, and who syncs meets nobody.
            return Ok(());
        }
        self.lazytime
            .write(|| self.write_times_of(InodeWalk::new()))
    }

    /// Those of the inodes that this walk meets.
    pub(crate) fn write_times_of(&self, mut walk: InodeWalk) -> Result<()> {
        if self.pinned {
            return Ok(());
        }
        let is_late = |inode: &Inode| Take::from(inode.has_lazy_time());
        self.walk_inodes_if(&mut walk, is_late, &mut |node| {
            self.write_time(node.inode())?;
            Ok(Visit::Continue)
        })
    }

    /// Hands over the access time of one inode, if it was kept back.
    ///
    /// # Errors
    /// What the store answers; then it is kept back still.
    pub(crate) fn write_time(&self, inode: &Inode) -> Result<()> {
        if !inode.take_lazytime() {
            return Ok(());
        }
        let handed = self
            .reserve(&Intent::giving_back().records(1))
            .and_then(|mut reservation| {
                let inodes = &[Change::Attributes {
                    inode: inode.record(&inode.meta()),
                }];
                self.apply(&mut reservation, [inode], inodes)
            });
        if handed.is_err() {
            inode.mark_lazy_time();
            self.lazytime.note();
        }
        handed
    }
}
