//! The layers in which something is looked for: what changed since the last cut, what a checkpoint is
//! folding into the trees, the trees.
//!
//! *Locking.* A change passes the gate and stays inside to its end; a cut, and the end of a checkpoint, close it. A
//! reader works with a snapshot of the layers, outside.

use std::sync::Arc;

use super::{Memtable, Object};
use crate::superblock::{self, Superblock};
use crate::tree::Root;
use holdfast_types::Ino;

/// The roots of the trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Roots {
    pub(in crate::store) inodes: Option<Root>,
    pub(in crate::store) entries: Option<Root>,
    pub(in crate::store) hashes: Option<Root>,
    pub(in crate::store) data: Option<Root>,
    /// Inodes without names, in a tree of their own.
    pub(in crate::store) orphans: Option<Root>,
}

/// The layers, the newest first.
#[derive(Clone, Debug)]
pub(in crate::store) struct Layers {
    /// What changes now.
    pub(in crate::store) active: Arc<Memtable>,
    /// What a checkpoint folds; it changes no more.
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

    /// The overlays, the newest first.
    pub(in crate::store) fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&*self.active).chain(self.frozen.as_deref())
    }

    /// Asks the overlays, the newest first, until one knows. `Known::Nothing`: there is nothing below
    /// either.
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

/// What overlays know of something.
#[derive(Debug)]
pub(in crate::store) enum Known<R> {
    /// This.
    Found(R),
    /// There is none.
    Nothing,
    /// The trees know.
    Below,
}

impl Roots {
    /// As a superblock has them.
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

    /// All of them.
    pub(in crate::store) fn each(&self) -> [Option<Root>; 5] {
        [
            self.inodes,
            self.entries,
            self.hashes,
            self.data,
            self.orphans,
        ]
    }

    /// As a superblock keeps them.
    pub(in crate::store) fn in_superblock(self) -> superblock::Roots {
        [self.inodes, self.entries, self.hashes, self.data].map(|root| [root, None, None, None])
    }
}
