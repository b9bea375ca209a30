//! The two iterators.

use crate::inodes::inode_walk::{InodeWalk, Take, Visit};
use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::Inode;
use crate::inodes::free::put_node;
use crate::node::Node;
use crate::types::Result;

/// Inodes that are referenced at once.
const BATCH: usize = 64;

pub(crate) fn walk_inodes(
    core: &Core,
    walk: &mut InodeWalk,
    visit: &mut dyn FnMut(&Node) -> Result<Visit>,
) -> Result<()> {
    walk_inodes_if(core, walk, |_| Take::Yes, visit)
}

/// Visits the inodes that are `wanted` when the walk reaches them. The others are not
/// referenced, which would write to each.
pub(crate) fn walk_inodes_if(
    core: &Core,
    walk: &mut InodeWalk,
    wanted: impl Fn(&Inode) -> Take,
    visit: &mut dyn FnMut(&Node) -> Result<Visit>,
) -> Result<()> {
    // Nodes, so that every way out drops the references, including a panic of the visitor.
    let mut batch: Vec<Node> = Vec::with_capacity(BATCH);
    while let Some(from) = walk.next {
        let next = {
            let guard = epoch::pin();
            let take = |inode: &Inode| {
                // An inode that the store was not given yet belongs to its creator.
                let may_be = (!walk.used_only || inode.may_be_used()) && !inode.is_new();
                let take = if may_be { wanted(inode) } else { Take::No };
                if take != Take::No {
                    batch.extend(Node::acquire_in_passing(inode));
                }
                batch.len() < BATCH && take != Take::Last
            };
            core.index.scan(from, walk.end, &guard, take)
        };
        let mut nodes = batch.drain(..);
        while let Some(node) = nodes.next() {
            let key = node.ino().0;
            let verdict = visit(&node);
            put_node(core, node);
            if verdict != Ok(Visit::Continue) {
                walk.next = key.checked_add(1).filter(|next| *next < walk.end);
                // Drops the references to the rest of the batch.
                nodes.for_each(|node| put_node(core, node));
                return verdict.map(drop);
            }
        }
        walk.next = next;
    }
    Ok(())
}

/// Calls `look` for every inode in memory, in any state, without a reference. `look` must not
/// block: it runs under an epoch guard.
pub(crate) fn scan_inodes(core: &Core, (from, end): (u64, u64), look: &mut dyn FnMut(&Inode)) {
    let mut next = Some(from);
    while let Some(from) = next {
        let guard = epoch::pin();
        next = core.index.scan(from, end, &guard, |inode| {
            look(inode);
            true
        });
    }
}
