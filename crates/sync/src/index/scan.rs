//! Walks over all objects, for whoever can stand that they change meanwhile.
//!
//! *Invariant.* The cursor is a key: an object that is there from the first call to the last is
//! visited exactly once, however long the walk takes.
#![expect(unsafe_code, reason = "the tree holds objects as plain pointers")]

use super::node::{self, LINE, Link, SLOTS};
use super::walk::Next;
use super::{Held, Index};
use crate::epoch::{self, Guard};
use crate::prefetch::{prefetch, prefetch_to_write};
use crate::primitive::{LOOKS_AHEAD, Ordering};
use std::ptr;

/// Leaves that a long walk looks at under one guard.
const PINNED_MAX: usize = 64;
/// Objects that are fetched before the first is looked at, and then ahead of each: about as many lines as a processor
/// fetches at a time. It would wait for others, instead of looking at the first.
const FETCHED: usize = 12;
/// In ranges of so many objects only one line of each leaf is counted.
const SAMPLED: u64 = 1 << 13;

/// How many of these slots hold an object?
fn taken(slots: &[Link]) -> u64 {
    let objects = slots.iter().map(|slot| slot.load(Ordering::Relaxed));
    objects
        .filter(|held| !node::target(*held).is_null())
        .count() as u64
}

impl<T: Send + Sync + 'static> Index<T> {
    /// Visits objects with `from <= key < to`, in the order of keys, the dying ones too. `to` of
    /// `u64::MAX` is the end of all keys.
    ///
    /// One call visits at most 64 objects, so that the caller can let go of the guard in between.
    /// Returns the key to go on from; `None` at the end. When `visit` returns `false` the call
    /// ends there, and returns the key behind.
    pub fn scan(
        &self,
        from: u64,
        to: u64,
        guard: &Guard,
        visit: impl FnMut(&Held<T>) -> bool,
    ) -> Option<u64> {
        self.scan_leaf((from, to), guard, prefetch, visit)
    }

    /// As [`Index::scan`], for a visitor who takes most objects into use, or ends them, if that is so: then their lines
    /// come ready to be written, which matters where another thread has looked at them.
    #[inline]
    pub fn scan_to_change(
        &self,
        most: bool,
        (from, to): (u64, u64),
        guard: &Guard,
        visit: impl FnMut(&Held<T>) -> bool,
    ) -> Option<u64> {
        let fetch = |held| match most {
            true => prefetch_to_write(held),
            false => prefetch(held),
        };
        self.scan_leaf((from, to), guard, fetch, visit)
    }

    #[inline]
    fn scan_leaf(
        &self,
        (from, to): (u64, u64),
        guard: &Guard,
        fetch: impl Fn(*const Held<T>),
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
                let mut batch = [ptr::null::<Held<T>>(); SLOTS];
                let mut found = 0;
                for slot in &leaf.slots()[first..end] {
                    // Acquire: objects are built before they are published.
                    let held = node::target(slot.load(Ordering::Acquire)).cast::<Held<T>>();
                    if !held.is_null() {
                        batch[found] = held;
                        found += 1;
                    }
                }
                let batch = &batch[..found];
                let mut coming = self.coming(base, to, guard);
                batch.iter().take(FETCHED).for_each(|held| fetch(*held));
                for (at, held) in batch.iter().enumerate() {
                    match batch.get(at + FETCHED) {
                        Some(later) => fetch(*later),
                        None => coming.next().into_iter().for_each(&fetch),
                    }
                    // SAFETY: met under the guard, as in `peek`.
                    let held = unsafe { &**held };
                    if !visit(held) {
                        return Some(held.key() + 1).filter(|next| *next < to);
                    }
                }
                base.checked_add(SLOTS as u64)?
            }
        };
        Some(next).filter(|next| *next < to)
    }

    /// What lies in the leaf behind that of `base`, up to `to`; its lines are fetched, for whoever will have some
    /// of those objects fetched by the time at which he comes there.
    #[inline]
    fn coming<'g>(
        &'g self,
        base: u64,
        to: u64,
        guard: &'g Guard,
    ) -> impl Iterator<Item = *const Held<T>> {
        let behind = base.saturating_add(SLOTS as u64);
        let leaf = match LOOKS_AHEAD && behind < to {
            true => self.tree.descend(behind, guard),
            false => Next::End,
        };
        // Objects beyond the end are perhaps another thread's.
        let slots = match leaf {
            Next::Leaf(base, leaf) if base < to => {
                &leaf.slots()[..(to - base).min(SLOTS as u64) as usize]
            }
            _ => &[],
        };
        slots.chunks(LINE).for_each(|line| prefetch(line.as_ptr()));
        let objects = slots
            .iter()
            .map(|slot| node::target(slot.load(Ordering::Relaxed)));
        objects.map(|object| object.cast_const().cast())
    }

    /// Splits all keys into at most `parts` ranges (`from`, `to`) for [`Index::scan`], so that about
    /// as many of the objects there now fall into each. The last one is open-ended.
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
            filled += if share >= SAMPLED {
                let line = leaf
                    .slots()
                    .chunks(LINE)
                    .nth((base / SLOTS as u64) as usize % LINE);
                line.map_or(0, taken) * (SLOTS / LINE) as u64
            } else {
                taken(leaf.slots())
            };
        });
        ranges.push((begin, u64::MAX));
        ranges
    }

    /// Frees the nodes that hold nothing any more. A few of them per core stay without this call,
    /// and those of keys that were never taken by an object after all.
    pub fn trim(&self) {
        self.each_leaf(|base, leaf, guard| {
            if leaf.is_empty(base, 0) {
                self.tree.prune(base, guard);
            }
        });
    }

    /// How many leaves there are, of 512 bytes each; counted one by one.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        let mut leaves = 0;
        self.each_leaf(|_, _, _| leaves += 1);
        leaves
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
