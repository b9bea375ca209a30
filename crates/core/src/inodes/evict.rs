//! Eviction of inodes without references when memory is needed, and access times that are written
//! late.

use crate::inodes::dropped::Dropped;
use crate::inodes::free::{end_inode, free_orphan, write_time};
use holdfast_sync::Freeing;

use super::{InodeWalk, Take, Visit};
use crate::core::Core;
use crate::inode::{Inode, Numbered as _, Object, Set};
use crate::inodes::shards::in_shards;
use crate::inodes::walk::{scan_inodes, walk_inodes_if};
use crate::locks::InodeLocks;
use crate::reclaim::content::forget_all;
use crate::types::{Ino, Result};

/// Inodes that an evicting walk takes at once.
const BATCH: usize = 64;

/// May the inode be evicted? File locks keep it, unless the file system was revoked.
fn is_evictable(core: &Core, inode: &Inode) -> bool {
    inode.ino() != Ino::ROOT
        && (core.policy.revoked() || inode.locks().is_none_or(InodeLocks::is_empty))
}

/// Marks an unreferenced inode as freeing. References by number do not prevent that if it is
/// linked: a load restores them. An unlinked inode could not be loaded, and stays for them.
fn begin_evict(core: &Core, inode: &Inode) -> Option<Freeing<Object>> {
    hop!();
    let freeing = core.index.begin_evict_though_held(inode)?;
    match freeing.nlink() {
        0 => freeing.unless_held(),
        _ => Some(freeing),
    }
}

/// Frees the orphans that the store would otherwise keep, before the file system is dropped.
pub(crate) fn free_unreachable(core: &Core) {
    free_orphans(core);
}

/// Frees all orphans: none can be reached any more, though open files or nodes may still refer
/// to them.
fn free_orphans(core: &Core) {
    in_shards(core, |range| {
        // The unchecked iterator: a referenced orphan has to be freed too, as no `put_node` will
        // follow.
        scan_inodes(core, range, &mut |inode| {
            if inode.nlink() == 0 {
                free_orphan(core, inode);
            }
        });
    });
}

/// Evicts the unreferenced inodes in this range, and drops the cached content of the others.
pub(crate) fn drop_inodes(core: &Core, range: (u64, u64)) -> Dropped {
    let dropped = evict_unused(core, range);
    forget_all(core, InodeWalk::range(range.0, range.1));
    dropped
}

/// Evicts all unreferenced inodes in this range, except the root.
pub(crate) fn evict_unused(core: &Core, range: (u64, u64)) -> Dropped {
    evict_inodes(core, range, &mut { u64::MAX }, None).1
}

/// Evicts unreferenced inodes in this range, until so many were scanned. Of a set only those
/// that were not used since the last scan, and lose no information. Returns where to continue,
/// unless at the end.
pub(crate) fn evict_inodes(
    core: &Core,
    range: (u64, u64),
    most: &mut u64,
    set: Option<Set>,
) -> (Option<u64>, Dropped) {
    hop!();
    let mut dropped = Dropped::default();
    let mut next = Some(range.0);
    while let Some(from) = next.filter(|_| *most > 0) {
        let found;
        (next, found) = victims(core, (from, range.1), most, set);
        for freeing in found {
            dropped.inodes += 1;
            if let Ok(body) = freeing.directory() {
                dropped.names += u64::from(body.names.cached());
            }
            end_inode(core, freeing);
        }
    }
    (next, dropped)
}

/// Marks a batch of such inodes as freeing.
fn victims(
    core: &Core,
    range: (u64, u64),
    most: &mut u64,
    set: Option<Set>,
) -> (Option<u64>, Vec<Freeing<Object>>) {
    hop!();
    let mut victims = Vec::with_capacity(BATCH);
    // The unchecked iterator: a reference would prevent the eviction.
    let guard = holdfast_sync::epoch::pin();
    let next = core.index.scan(range.0, range.1, &guard, |inode| {
        victims.extend(victim(core, inode, set));
        *most -= 1;
        *most > 0 && victims.len() < BATCH
    });
    (next, victims)
}

/// Marks an inode as freeing, if it is to be evicted.
fn victim(core: &Core, inode: &Inode, set: Option<Set>) -> Option<Freeing<Object>> {
    let is_idle = |set| core.reclaim.is_idle(inode, set);
    if !is_evictable(core, inode) || !set.is_none_or(is_idle) {
        return None;
    }
    let freeing = begin_evict(core, inode)?;
    // Rechecked in the freeing state, in which no file lock can be taken. Not for an unlinked
    // inode: a concurrent last FORGET relies on this thread to free it.
    let goes = freeing.nlink() == 0
        || is_evictable(core, &freeing) && set.is_none_or(|set| core.reclaim.can_go(&freeing, set));
    goes.then_some(freeing)
}

/// Submits the access times that `lazytime` kept back.
///
/// # Errors
/// The store's.
pub(crate) fn write_times(core: &Core) -> Result<()> {
    let has_lazy_time = |inode: &Inode| Take::from(inode.has_lazy_time());
    let walk = || {
        walk_inodes_if(core, &mut InodeWalk::new(), has_lazy_time, &mut |node| {
            write_time(core, node.inode())?;
            Ok(Visit::Continue)
        })
    };
    core.lazytime.write(walk)
}
