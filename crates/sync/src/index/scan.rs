//! Scans over all objects, which may change meanwhile.
//!
//! *Invariant.* The cursor is a key: an object that is in the index from the first call to the last
//! is visited exactly once, however long the scan takes.
#![expect(unsafe_code, reason = "the tree holds objects as plain pointers")]

use super::held::Held;
use super::map::Index;
use super::node::{self, SLOTS};
use super::walk::Next;
use crate::epoch::{self, Guard};
use crate::prefetch::prefetch;

/// Leaves that a long scan visits under one guard.
const PINNED_MAX: usize = 64;

impl<T: Send + Sync + 'static> Index<T> {
    /// Visits objects with `from <= key < to` in the order of keys, freeing ones included. A `to`
    /// of `u64::MAX` is the end of all keys.
    ///
    /// One call visits at most 64 objects, so that the caller can drop the guard in between.
    /// Returns the key to go on from, or `None` at the end. If `visit` returns `false` the call
    /// ends there, and returns the key after that object.
    pub fn scan(
        &self,
        from: u64,
        to: u64,
        guard: &Guard,
        mut visit: impl FnMut(&Held<T>) -> bool,
    ) -> Option<u64> {
        if from >= to {
            return None;
        }
        let next = match self.tree.next_leaf(from, guard) {
            Next::End => return None,
            Next::From(next) => next,
            Next::Leaf(base, _) if base >= to => return None,
            Next::Leaf(base, leaf) => {
                let first = from.saturating_sub(base) as usize;
                let end = (to - base).min(SLOTS as u64) as usize;
                let mut batch = [None; SLOTS];
                for (object, slot) in batch.iter_mut().zip(&leaf.slots()[first..end]) {
                    *object = node::object(slot).inspect(|object| prefetch(object.as_ptr()));
                }
                for object in batch.into_iter().flatten() {
                    // SAFETY: found under the guard, as in `peek`.
                    let held = unsafe { object.cast::<Held<T>>().as_ref() };
                    if !visit(held) {
                        return Some(held.key() + 1).filter(|next| *next < to);
                    }
                }
                base.checked_add(SLOTS as u64)?
            }
        };
        Some(next).filter(|next| *next < to)
    }

    /// Splits all keys into at most `parts` ranges (`from`, `to`) for [`Index::scan`], with about
    /// as many of the current objects in each. The last one is open-ended.
    #[must_use]
    pub fn ranges(&self, parts: usize) -> Vec<(u64, u64)> {
        if parts <= 1 {
            return vec![(0, u64::MAX)];
        }
        let share = self.len().div_ceil(parts as u64).max(1);
        let mut ranges = Vec::with_capacity(parts);
        let (mut begin, mut filled) = (0, 0);
        self.each_leaf(|base, leaf, _| {
            if filled >= share && ranges.len() + 1 < parts {
                ranges.push((begin, base));
                (begin, filled) = (base, 0);
            }
            filled += leaf.slots().iter().filter_map(node::object).count() as u64;
        });
        ranges.push((begin, u64::MAX));
        ranges
    }

    /// Frees empty leaves and the nodes above them. Without this call a few of them remain for each
    /// core, and those of keys that never got an object.
    pub fn trim(&self) {
        self.each_leaf(|base, leaf, guard| {
            if leaf.is_empty(base, 0) {
                self.tree.prune(base, guard);
            }
        });
    }

    /// Calls `leaf` with every leaf and the key of its first slot.
    fn each_leaf(&self, mut leaf: impl FnMut(u64, &node::Node, &Guard)) {
        let mut from = Some(0);
        while from.is_some() {
            let guard = epoch::pin();
            for _ in 0..PINNED_MAX {
                let Some(key) = from else { break };
                from = match self.tree.next_leaf(key, &guard) {
                    Next::End => None,
                    Next::From(next) => Some(next),
                    Next::Leaf(base, node) => {
                        leaf(base, node, &guard);
                        base.checked_add(SLOTS as u64)
                    }
                };
            }
        }
    }
}
