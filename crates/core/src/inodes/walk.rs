//! The iterators.

use holdfast_sync::epoch;

use crate::file_system::Core;
use crate::inode::Inode;
use crate::node::Node;
use crate::types::Result;

/// Inodes that are taken into use at once.
const BATCH: usize = 64;

/// What a visitor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The next inode.
    Continue,
    /// No more inodes now: the walk can go on later behind this one.
    Stop,
}

/// Is an inode that a walk comes to taken into use, to be visited?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    No,
    Yes,
    /// And no other one before it was visited.
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

/// A walk over the inodes in memory, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeWalk {
    /// The number to go on from.
    next: Option<u64>,
    /// The number behind the last.
    end: u64,
    used_only: bool,
}

impl InodeWalk {
    /// Over all of them.
    #[must_use]
    pub fn new() -> Self {
        Self::range(0, u64::MAX)
    }

    /// Over those with greater numbers.
    pub(crate) fn after(last: crate::types::Ino) -> Self {
        Self::range(last.0.saturating_add(1), u64::MAX)
    }

    /// The numbers from which on, and up to which, it would go; `None` if it is done.
    pub(crate) fn rest(&self) -> Option<(u64, u64)> {
        self.next.map(|next| (next, self.end))
    }

    pub(crate) fn range(from: u64, end: u64) -> Self {
        Self {
            next: Some(from),
            end,
            used_only: false,
        }
    }

    /// Leaves out inodes that nobody uses. (Those that several threads used lately are shown in any
    /// case: their uses are counted by core, and no moment has a sum of them.)
    #[must_use]
    pub fn used_only(mut self) -> Self {
        self.used_only = true;
        self
    }

    /// Has it come to its end?
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

impl Core {
    pub(crate) fn walk_inodes(
        &self,
        walk: &mut InodeWalk,
        visit: &mut dyn FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        // Nearly all are taken into use.
        let most = !walk.used_only;
        self.walk_by(most, walk, |_| Take::Yes, visit)
    }

    /// Those that are `wanted` at the moment in which the walk comes to them: the others are not
    /// taken into use, which would write to each.
    pub(crate) fn walk_inodes_if(
        &self,
        walk: &mut InodeWalk,
        wanted: impl Fn(&Inode) -> Take,
        visit: &mut dyn FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        self.walk_by(false, walk, wanted, visit)
    }

    /// `most`: most inodes are taken into use.
    #[inline]
    fn walk_by(
        &self,
        most: bool,
        walk: &mut InodeWalk,
        wanted: impl Fn(&Inode) -> Take,
        visit: &mut dyn FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        // Nodes: they give their uses back properly on every way out, a visitor's panic included.
        let mut batch: Vec<Node> = Vec::with_capacity(BATCH);
        while let Some(from) = walk.next {
            let next = {
                let guard = epoch::pin();
                let take = |inode: &Inode| {
                    // What is not yet known to the store is its maker's alone.
                    let may_be = (!walk.used_only || inode.may_be_used())
                        && (self.pinned || !inode.is_unborn());
                    let take = if may_be { wanted(inode) } else { Take::No };
                    if take != Take::No {
                        batch.extend(Node::acquire_in_passing(inode));
                    }
                    batch.len() < BATCH && take != Take::Last
                };
                let range = (from, walk.end);
                self.index.scan_to_change(most, range, &guard, take)
            };
            let mut nodes = batch.drain(..);
            while let Some(node) = nodes.next() {
                let key = node.ino().0;
                let verdict = visit(&node);
                self.put_in_passing(node);
                if verdict != Ok(Visit::Continue) {
                    walk.next = key.checked_add(1).filter(|next| *next < walk.end);
                    // The rest of the batch was taken into use, and is given back in turn.
                    nodes.for_each(|node| self.put(node));
                    return verdict.map(drop);
                }
            }
            walk.next = next;
        }
        Ok(())
    }

    /// Shows every inode in memory to `look`, in whatever state, without taking it into use. The
    /// visitor must not block: it runs under a guard.
    pub(crate) fn scan_inodes(&self, (from, end): (u64, u64), look: &mut dyn FnMut(&Inode)) {
        let mut next = Some(from);
        while let Some(from) = next {
            let guard = epoch::pin();
            next = self.index.scan(from, end, &guard, |inode| {
                look(inode);
                true
            });
        }
    }
}
