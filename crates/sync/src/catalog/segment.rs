//! A piece of the table: a few lines of slots, in which an item never moves.
//!
//! A key's home is one bucket, chosen by its hash; where that is full its item lies in one of the
//! next. A bucket that was ever passed over is marked, so that a search knows where it ends.
//! Because items do not move, a reader needs neither lock nor retry.
//!
//! *Invariants.* An item lies in the first buckets from its home on, and all buckets before its own
//! are marked, since before it was put there.
//!
//! *Locking.* Changed under the catalog's lock only; read under a guard.
#![expect(unsafe_code, reason = "an array of lines whose length the owner knows")]

use super::item::Item;
use super::slot::{Slot, Word};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Slots of a bucket: one cache line.
pub(super) const BUCKET_SLOTS: usize = 8;
/// Buckets that an item may be away from home, as long as the table can grow.
const REACH: usize = 3;

/// One line of slots.
#[repr(C, align(64))]
pub(super) struct Bucket([Slot; BUCKET_SLOTS]);

const _: () = assert!(size_of::<Bucket>() == 64);

fn layout(size_log: u32) -> Layout {
    Layout::array::<Bucket>(1 << size_log).expect("names are limited")
}

/// Makes an empty segment of 2^`size_log` buckets.
pub(super) fn allocate(size_log: u32) -> NonNull<Bucket> {
    let layout = layout(size_log);
    // SAFETY: the layout is not of size 0.
    let memory = unsafe { alloc_zeroed(layout) };
    let Some(first) = NonNull::new(memory.cast::<Bucket>()) else {
        handle_alloc_error(layout)
    };
    first
}

/// Gives a segment's memory back, not its items'.
///
/// # Safety
/// It comes from [`allocate`] with this size, nobody uses it any more, and it is freed once.
pub(super) unsafe fn free(first: NonNull<Bucket>, size_log: u32) {
    // SAFETY: allocated with this layout.
    unsafe { dealloc(first.as_ptr().cast(), layout(size_log)) };
}

/// A segment to look at, or to change by whoever holds the lock.
#[derive(Clone, Copy)]
pub(super) struct Segment<'g> {
    buckets: &'g [Bucket],
}

/// The part of a hash that a slot keeps.
#[inline]
fn tag(hash: u64) -> u16 {
    hash as u16
}

impl<'g> Segment<'g> {
    /// The segment at this address.
    ///
    /// # Safety
    /// It comes from [`allocate`] with this size; neither it nor an item found in it is freed
    /// during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(first: NonNull<Bucket>, size_log: u32) -> Self {
        // SAFETY: allocated as zeros, which are slots with nothing in them.
        let buckets = unsafe { std::slice::from_raw_parts(first.as_ptr(), 1 << size_log) };
        Self { buckets }
    }

    /// The buckets from the key's home on, all of them.
    #[inline]
    fn starting_home(self, hash: u64) -> impl Iterator<Item = &'g Bucket> {
        let mask = self.buckets.len() - 1;
        // The bits above the tag's. Those of the segment are taken from the top.
        let home = (hash >> 16) as usize;
        (0..self.buckets.len()).map(move |step| &self.buckets[(home + step) & mask])
    }

    /// The slot and the item of a key.
    #[inline]
    pub(super) fn find(self, hash: u64, key: &[u8]) -> Option<(&'g Slot, Item<'g>)> {
        let tag = tag(hash);
        for bucket in self.starting_home(hash) {
            let words = bucket.0.each_ref().map(Slot::load);
            // Without a branch for each slot: which of them it is cannot be foreseen.
            let mut matches = 0_u32;
            for (at, word) in words.iter().enumerate() {
                matches |= u32::from(word.has_tag(tag)) << at;
            }
            while matches != 0 {
                let at = matches.trailing_zeros() as usize % BUCKET_SLOTS;
                if let Some(item) = words[at].as_item()
                    && item.key() == key
                {
                    return Some((&bucket.0[at], item));
                }
                matches &= matches - 1;
            }
            if !words[0].is_marked() {
                break;
            }
        }
        None
    }

    /// Is there room near the home of this hash?
    pub(super) fn has_room_near(self, hash: u64) -> bool {
        self.starting_home(hash)
            .take(REACH)
            .any(|bucket| bucket.free_slot().is_some())
    }

    /// Is there any room?
    pub(super) fn has_room(self) -> bool {
        self.buckets
            .iter()
            .any(|bucket| bucket.free_slot().is_some())
    }

    /// Adds an item whose key is not there. There is room.
    pub(super) fn put(self, hash: u64, item: Item<'g>) {
        for bucket in self.starting_home(hash) {
            if let Some(slot) = bucket.free_slot() {
                let word = Word::item(item, tag(hash));
                let marked = slot.load().is_marked();
                slot.store(if marked { word.marked() } else { word });
                return;
            }
            // Before the item is put behind it: see the invariants.
            let first = &bucket.0[0];
            first.store(first.load().marked());
        }
        unreachable!("a segment without room");
    }

    /// All items.
    pub(super) fn items(self) -> impl Iterator<Item = Item<'g>> {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        slots.filter_map(|slot| slot.load().as_item())
    }
}

/// Empties a slot of a segment.
pub(super) fn clear(slot: &Slot) {
    let nothing = Word::nothing();
    let marked = slot.load().is_marked();
    slot.store(if marked { nothing.marked() } else { nothing });
}

impl Bucket {
    fn free_slot(&self) -> Option<&Slot> {
        self.0.iter().find(|slot| slot.load().as_item().is_none())
    }
}
