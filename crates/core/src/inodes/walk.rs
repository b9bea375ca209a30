//! The two iterators.

use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::Inode;
use crate::inodes::evict::put_node;
use crate::node::Node;
use crate::types::Result;

/// Inodes that are referenced at once.
const BATCH: usize = 64;

/// A visitor's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Continue with the next inode.
    Continue,
    /// Stop; the walk can continue later behind this inode.
    Stop,
}

/// Does a walk reference an inode and visit it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    No,
    Yes,
    /// Yes, and visit it before any other inode is referenced.
    Last,
}

impl From<bool> for Take {
    fn from(wanted: bool) -> Self {
        match wanted {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The state of a walk over the inodes in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeWalk {
    /// The number to continue from.
    next: Option<u64>,
    /// The end of the range, exclusive.
    end: u64,
    used_only: bool,
}

impl InodeWalk {
    /// A walk over all inodes.
    #[must_use]
    pub fn new() -> Self {
        Self::range(0, u64::MAX)
    }

    /// A walk over the inodes with greater numbers.
    pub(crate) fn after(last: crate::types::Ino) -> Self {
        Self::range(last.0.saturating_add(1), u64::MAX)
    }

    pub(crate) fn range(from: u64, end: u64) -> Self {
        Self {
            next: Some(from),
            end,
            used_only: false,
        }
    }

    /// Skips unreferenced inodes. An inode that several threads used lately is visited in any case:
    /// its reference count is split by core and cannot be summed atomically.
    #[must_use]
    pub fn used_only(mut self) -> Self {
        self.used_only = true;
        self
    }

    /// Is the walk complete?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.next.is_none()
    }
}

impl Default for InodeWalk {
    fn default() -> Self {
        Self::new()
    }
}

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
