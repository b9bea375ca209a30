//! The end of an inode in memory: an orphan is freed with its last reference, another inode is
//! unloaded.

use crate::core::Core;
use crate::inode::{Inode, Numbered as _, Object, kept_values};
use crate::io::map::stored_pages;
use crate::io::pages::loaded_account;
use crate::node::Node;
use crate::quota::Check;
use crate::registry;
use crate::shared::let_go;
use crate::space::FileSpace;
use crate::store::{Change, Intent, Space, kept_bytes};
use crate::transaction::decide;
use crate::types::{FileType, Result};
use crate::watch::EventMask;
use holdfast_cache::Pages;
use holdfast_cache::Space as _;
use holdfast_sync::{Freeing, Ref};

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

/// Drops a reference; the last one of a marked inode frees it.
#[inline]
pub(crate) fn put_node(core: &Core, node: Node) {
    if let Some(freeing) = node.into_inner().and_then(Ref::release) {
        end_inode(core, freeing);
    }
}

/// Is this inode one of this file system? An inode that is being freed stays in the index so
/// long.
fn holds_inode(core: &Core, inode: &Inode) -> bool {
    let guard = holdfast_sync::epoch::pin();
    let held = core.index.peek(inode.key(), &guard);
    held.is_some_and(|held| std::ptr::eq(held, inode))
}

/// Evicts an unreferenced inode; an orphan is freed with all it holds.
pub(crate) fn end_inode(core: &Core, freeing: Freeing<Object>) {
    hop!();
    end_locks(core, &freeing);
    if freeing.nlink() == 0 {
        // Freeing counts as a use, as in `begin_free`.
        freeing.note_first_use(&core.reclaim.epochs);
        free_orphan(core, &freeing);
    } else {
        if freeing.is_unused_readahead() {
            core.readahead.wasted.add(1);
        }
        unload_inode(core, &freeing);
    }
    free_inode(core, freeing);
}

fn end_locks(core: &Core, inode: &Inode) {
    if let Some(locks) = inode.locks() {
        // Locks that their owners never released. There is no waiter: it would hold a
        // reference.
        locks.end(&core.lock_graph);
    }
}

/// Begins to free an unlinked inode. The caller submits the change, and then calls
/// `finish_free`.
pub(crate) fn begin_free(core: &Core, freeing: Freeing<Object>) -> FreeingOrphan {
    // Asked before the free: afterwards the store does not know the inode.
    let stored = stored_alone(core, &freeing);
    // Freeing counts as a use.
    freeing.note_first_use(&core.reclaim.epochs);
    FreeingOrphan { freeing, stored }
}

/// Completes an inode that the store has freed.
pub(crate) fn finish_free(core: &Core, begin_free: FreeingOrphan) {
    let FreeingOrphan { freeing, stored } = begin_free;
    end_locks(core, &freeing);
    clear_orphan(core, &freeing, stored);
    free_inode(core, freeing);
}

fn free_inode(core: &Core, freeing: Freeing<Object>) {
    hop!();
    if freeing.is_main() {
        core.reclaim.main.add(-1);
    }
    let ino = freeing.ino();
    let mut evictions = core.evictions.lock(ino);
    // Last: a concurrent lookup of the number waits for this, and then finds the final state.
    evictions.free(&core.index, freeing);
    if core.coherence.is_some() {
        let_go(core, ino, evictions.is_used(ino));
    }
}

pub(crate) fn free_orphan(core: &Core, orphan: &Inode) {
    clear_orphan(core, orphan, stored_alone(core, orphan));
    if core.through.is_some() {
        // The store learns from `let_go` that the inode is no longer referenced.
        return;
    }
    // An orphan that could not be freed is found again when the store is opened: the error is
    // dropped.
    let ended = Intent {
        ended: 1,
        ..Intent::giving_back()
    };
    if let Ok(transaction) = decide(core, &ended) {
        let change = [Change::Free { ino: orphan.ino() }];
        let _ = transaction.commit(&change);
    }
}

/// Pages of a file's content that only the store knows of, if the space counters need them.
fn stored_alone(core: &Core, orphan: &Inode) -> u64 {
    let is_file = orphan.kind() == FileType::Regular;
    if core.frees || !is_file || orphan.is_mapped() {
        return 0;
    }
    if let Some(pages) = orphan.known_unmapped_pages() {
        return pages;
    }
    if orphan.size() == 0 {
        return 0;
    }
    stored_pages(core, orphan.ino()).unwrap_or(0)
}

/// Releases everything that an orphan holds except its record in the store.
fn clear_orphan(core: &Core, orphan: &Inode, stored: u64) {
    let ino = orphan.ino();
    core.watches.notify(ino, EventMask::DELETE_SELF, None, 0);
    core.watches.gone(ino);
    detach_quotas(core, orphan);
    if let Ok(pages) = orphan.regular()
        && !(pages.is_empty() && stored == 0)
    {
        let space = FileSpace::new(core, orphan, Check::Nothing);
        pages.lock().clear(space.account());
        // Content that was never loaded takes space in the store all the same. If the store
        // cannot report how much, it stays counted.
        space.release(stored);
    }
    release_inode(core, orphan);
}

/// Releases what a linked inode holds in memory: the store has it, or its file system was
/// revoked and it can never be reached again.
fn unload_inode(core: &Core, inode: &Freeing<Object>) {
    hop!();
    if core.pinned {
        release_unreachable(core, inode);
    }
    forget_names(core, inode);
    // An access time may have moved since the last sync. The write is tried once: a failed
    // store has stopped its writers.
    let _ = write_time(core, inode);
    if let Ok(pages) = inode.regular()
        && !pages.is_empty()
    {
        // The bytes keep their space in the store.
        pages.lock().clear(loaded_account(core));
    }
}

/// Releases the space of a linked inode that no store has: its file system was revoked.
fn release_unreachable(core: &Core, inode: &Inode) {
    detach_quotas(core, inode);
    if let Ok(pages) = inode.regular() {
        pages
            .lock()
            .clear(FileSpace::new(core, inode, Check::Nothing).account());
    }
    release_names(core, inode);
    release_inode(core, inode);
}

/// Releases the space of a directory's names.
pub(crate) fn release_names(core: &Core, inode: &Inode) {
    if let Ok(body) = inode.directory() {
        let _names = body.names.write();
        let guard = holdfast_sync::epoch::pin();
        let names = body.names.after(0, &guard);
        let bytes = names.map(|(name, _)| kept_bytes(name.len()));
        core.behind.release(Space {
            bytes: bytes.sum(),
            ..Space::default()
        });
    }
}

/// Releases the inode's space beside pages and names.
fn release_inode(core: &Core, inode: &Inode) {
    core.behind.release(Space {
        pages: 0,
        inodes: 1,
        bytes: kept_values(inode),
    });
}

/// Drops the names of a directory from memory, if the inode is one.
pub(crate) fn forget_names(core: &Core, inode: &Inode) {
    hop!();
    if let Ok(body) = inode.directory() {
        let mut names = body.names.write();
        core.names.add(-i64::from(body.names.cached()));
        // After a revocation nothing is loaded again, though the directory may still be
        // referenced.
        names.forget(!core.policy.revoked());
        core.names.add(names.recount());
    }
}

/// Submits the access time of one inode, if it was kept back.
///
/// # Errors
/// The store's; the time is then kept back again.
pub(crate) fn write_time(core: &Core, inode: &Inode) -> Result<()> {
    if !inode.take_lazytime() {
        return Ok(());
    }
    let begun = decide(core, &Intent::giving_back().records(1));
    let written = begun.and_then(|transaction| {
        let transaction = transaction.lock([inode]);
        let record = inode.record(&inode.meta());
        transaction.commit(&[Change::Attributes { inode: record }])
    });
    if written.is_err() {
        inode.mark_lazy_time();
        core.lazytime.note();
    }
    written
}

impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        if let Some(freeing) = self.inode.take().and_then(Ref::release) {
            end(freeing);
        }
    }
}

/// Frees an orphan after its last reference was dropped.
#[cold]
fn end(freeing: Freeing<Object>) {
    // After the end of its file system there is nothing to release; `holds_inode` excludes a reused
    // file system number.
    if let Some(core) = registry::find(freeing.file_system())
        && holds_inode(&core, &freeing)
    {
        end_inode(&core, freeing);
    }
}

/// Releases the charges of an inode that is freed.
fn detach_quotas(core: &Core, inode: &Inode) {
    if core.quotas.is_on() {
        let pages = inode.regular().map_or(0, Pages::pages);
        core.quotas.detach(inode.mark(), inode.owner(), pages);
    }
}
