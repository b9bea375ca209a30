//! The layers: the active memtable, the frozen one that a checkpoint merges, and the trees.
//!
//! *Locking.* A change stays inside the freeze barrier to its end; a commit point and the end of a
//! checkpoint close it. A reader uses a snapshot, outside.

use std::sync::Arc;

use super::{Memtable, Object, TreeCost};
use crate::superblock::{self, Superblock};
use crate::tree::Root;
use holdfast_types::Ino;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Roots {
    pub(in crate::store) inodes: Option<Root>,
    pub(in crate::store) entries: Option<Root>,
    pub(in crate::store) hashes: Option<Root>,
    pub(in crate::store) data: Option<Root>,
    /// Inodes with `nlink == 0`, in a tree of their own.
    pub(in crate::store) orphans: Option<Root>,
}

/// The layers, newest first.
#[derive(Clone, Debug)]
pub(in crate::store) struct Layers {
    /// Receives all changes.
    pub(in crate::store) active: Arc<Memtable>,
    /// What a checkpoint merges; it does not change.
    pub(in crate::store) frozen: Option<Arc<Memtable>>,
    pub(in crate::store) roots: Roots,
}

impl Layers {
    pub(in crate::store) fn over(roots: Roots) -> Self {
        Self {
            active: Arc::new(Memtable::new()),
            frozen: None,
            roots,
        }
    }

    /// The memtables, newest first.
    pub(in crate::store) fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&*self.active).chain(self.frozen.as_deref())
    }

    /// The cost of all memtables.
    pub(in crate::store) fn tree_cost(&self) -> TreeCost {
        let changed = self.memtables().map(Memtable::tree_cost);
        changed.fold(TreeCost::default(), std::ops::Add::add)
    }

    /// Calls `look` with the object in each memtable, newest first, until one knows.
    /// `Known::Nothing`: the trees have none either.
    pub(in crate::store) fn find<R>(
        &self,
        ino: Ino,
        mut look: impl FnMut(&Object) -> Option<R>,
    ) -> Known<R> {
        for memtable in self.memtables() {
            let known = memtable.with(ino, |object| match look(object) {
                Some(found) => Known::Found(found),
                None if object.fresh || object.is_freed() => Known::Nothing,
                None => Known::Below,
            });
            match known {
                None | Some(Known::Below) => {}
                Some(known) => return known,
            }
        }
        Known::Below
    }
}

/// The memtables' knowledge of something.
#[derive(Debug)]
pub(in crate::store) enum Known<R> {
    Found(R),
    /// It does not exist.
    Nothing,
    /// Only the trees know.
    Below,
}

impl Roots {
    /// The roots in a superblock.
    pub(in crate::store) fn of_superblock(superblock: &Superblock) -> Self {
        let [inodes, entries, hashes, data] = superblock.roots.map(|tree| tree[0]);
        Self {
            inodes,
            entries,
            hashes,
            data,
            orphans: superblock.orphans,
        }
    }

    pub(in crate::store) fn each(&self) -> [Option<Root>; 5] {
        [
            self.inodes,
            self.entries,
            self.hashes,
            self.data,
            self.orphans,
        ]
    }

    /// The roots for a superblock.
    pub(in crate::store) fn in_superblock(self) -> superblock::Roots {
        [self.inodes, self.entries, self.hashes, self.data].map(|root| [root, None, None, None])
    }
}
