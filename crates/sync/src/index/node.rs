//! Nodes of the tree: 64 slots, and the mark that freezes one.

use crate::primitive::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

/// Bits of a key that one level decides.
pub(super) const BITS: u32 = crate::primitive::NODE_BITS;
/// Slots of a node.
pub(super) const SLOTS: usize = 1 << BITS;
/// Slots of a cache line.
pub(super) const LINE: usize = 8;
/// Levels that a key of 64 bits can need; level 0 are the leaves.
pub(super) const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// Marks a slot of a node that is being replaced. The slot never changes again. Pointers are
/// aligned to cache lines, so the bit is free.
const FROZEN: usize = 1;

/// The content of a slot: null, a node of the next level, or in a leaf an object.
pub(super) type Link = AtomicPtr<()>;

/// A node: 512 bytes, eight lines of eight slots each.
#[repr(align(64))]
pub(super) struct Node {
    slots: [Link; SLOTS],
}

/// The level of the root for `key`: the lowest one that covers all its bits.
#[inline]
pub(super) fn root_level(key: u64) -> usize {
    ((u64::BITS - 1 - (key | 1).leading_zeros()) / BITS) as usize
}

/// The bits of a key below those that a node of `level` decides.
#[inline]
pub(super) fn shift(level: usize) -> u32 {
    level as u32 * BITS
}

/// Which slot of a node of `level` leads to `key`?
#[inline]
pub(super) fn position(key: u64, level: usize) -> usize {
    (key >> shift(level)) as usize % SLOTS
}

/// The key of the first slot in the leaf of `key`.
#[inline]
pub(super) fn leaf_of(key: u64) -> u64 {
    key & !(SLOTS as u64 - 1)
}

#[inline]
pub(super) fn is_frozen(link: *mut ()) -> bool {
    link.addr() & FROZEN != 0
}

/// The pointer without the mark.
#[inline]
pub(super) fn target(link: *mut ()) -> *mut () {
    link.map_addr(|address| address & !FROZEN)
}

/// As [`target`], for links that seldom have the mark.
#[inline]
pub(super) fn usual_target(link: *mut ()) -> *mut () {
    if is_frozen(link) {
        return seldom(link);
    }
    link
}

#[cold]
fn seldom(link: *mut ()) -> *mut () {
    target(link)
}

/// The object in a slot of a leaf.
pub(super) fn object(slot: &Link) -> Option<NonNull<()>> {
    // Acquire: objects are built before they are published.
    NonNull::new(target(slot.load(Ordering::Acquire)))
}

impl Node {
    /// A node with what `link` gives for each slot.
    pub(super) fn with(link: impl Fn(usize) -> *mut ()) -> Box<Self> {
        Box::new(Self {
            slots: std::array::from_fn(|slot| Link::new(link(slot))),
        })
    }

    /// A node without anything.
    pub(super) fn empty() -> Box<Self> {
        Self::with(|_| ptr::null_mut())
    }

    #[inline]
    pub(super) fn slot(&self, key: u64, level: usize) -> &Link {
        &self.slots[position(key, level)]
    }

    pub(super) fn slots(&self) -> &[Link; SLOTS] {
        &self.slots
    }

    /// Is every slot empty? The answer is final only if the node is frozen. Looks first at the
    /// slots beside that of `key`, which are in the cache when it was just emptied.
    pub(super) fn is_empty(&self, key: u64, level: usize) -> bool {
        let (before, after) = self.slots.split_at(position(key, level) & !(LINE - 1));
        let is_null = |slot: &Link| target(slot.load(Ordering::Relaxed)).is_null();
        after.iter().all(is_null) && before.iter().all(is_null)
    }

    /// Freezes every slot, beside other threads that do the same, and returns their final content.
    pub(super) fn freeze(&self) -> [*mut (); SLOTS] {
        std::array::from_fn(|slot| {
            let slot = &self.slots[slot];
            // Acquire: other threads built the target, and the caller will publish it again.
            let mut link = slot.load(Ordering::Acquire);
            while !is_frozen(link) {
                let frozen = link.map_addr(|address| address | FROZEN);
                match slot.compare_exchange(link, frozen, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(now) => link = now,
                }
            }
            target(link)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_the_lowest_that_covers_the_key() {
        for key in (0..u64::BITS).flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit]) {
            let level = root_level(key);
            assert!(level < LEVELS);
            assert!(level == LEVELS - 1 || key >> shift(level + 1) == 0, "{key}");
            assert!(level == 0 || key >> shift(level) != 0, "{key}");
        }
    }

    #[test]
    fn nodes_have_the_size_of_their_slots() {
        assert_eq!(
            size_of::<Node>(),
            (SLOTS * size_of::<Link>()).next_multiple_of(64)
        );
        assert_eq!(align_of::<Node>(), 64);
    }
}
