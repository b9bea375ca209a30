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
use crate::catalog_primitive::{BUCKET_SLOTS, MODEL, REACH, dealloc};
use crate::epoch;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

/// One line of slots.
#[repr(C, align(64))]
pub(super) struct Bucket([Slot; BUCKET_SLOTS]);

const _: () = assert!(MODEL || size_of::<Bucket>() == 64);

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
    if MODEL {
        for at in 0..1 << size_log {
            // SAFETY: below the number of buckets allocated.
            let bucket = unsafe { first.add(at) };
            // SAFETY: allocated, aligned, and not shared yet.
            unsafe { bucket.write(Bucket(std::array::from_fn(|_| Slot::new()))) };
        }
    }
    first
}

/// Gives a segment's memory back, not its items'.
///
/// # Safety
/// It comes from [`allocate`] with this size, nobody uses it any more, and it is freed once.
pub(super) unsafe fn free(first: NonNull<Bucket>, size_log: u32) {
    if MODEL {
        // SAFETY: nobody uses it any more, says the caller.
        let segment: Segment<'_> = unsafe { Segment::from_raw(first, size_log) };
        let slots = segment.buckets.iter().flat_map(|bucket| &bucket.0);
        slots.for_each(Slot::end);
    }
    // SAFETY: allocated with this layout.
    unsafe { dealloc(first.as_ptr().cast(), layout(size_log)) };
}

unsafe fn free_retired(packed: *mut ()) {
    let size_log = (packed.addr() & (align_of::<Bucket>() - 1)) as u32;
    let first = packed.map_addr(|address| address & !(align_of::<Bucket>() - 1));
    if let Some(first) = NonNull::new(first.cast::<Bucket>()) {
        // SAFETY: retired once, with its size in the low bits; the grace period is over.
        unsafe { free(first, size_log) };
    }
}

/// Frees a segment after a grace period, not its items.
///
/// # Safety
/// It comes from [`allocate`] with this size, no reader can find it from now on, and it is retired
/// once.
pub(super) unsafe fn retire(first: NonNull<Bucket>, size_log: u32) {
    // The size goes into bits that the alignment leaves free; there are far less than 2^64 slots.
    let packed = first
        .as_ptr()
        .map_addr(|address| address | size_log as usize);
    // SAFETY: says the caller; memory can be freed on any thread.
    unsafe { epoch::retire_with(packed.cast(), free_retired) };
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

    /// The bucket so many steps from the key's home.
    #[inline]
    fn bucket(self, hash: u64, step: usize) -> &'g Bucket {
        // The bits above the tag's. Those of the segment are taken from the top.
        let home = (hash >> u16::BITS) as usize;
        &self.buckets[(home + step) & (self.buckets.len() - 1)]
    }

    /// The slot and the item of a key.
    #[inline]
    pub(super) fn find(self, hash: u64, key: &[u8]) -> Option<(&'g Slot, Item<'g>)> {
        let home = self.bucket(hash, 0);
        match home.find(tag(hash), key) {
            None if home.is_marked() => self.find_beyond(hash, key),
            found => found,
        }
    }

    #[cold]
    fn find_beyond(self, hash: u64, key: &[u8]) -> Option<(&'g Slot, Item<'g>)> {
        for step in 1..self.buckets.len() {
            let bucket = self.bucket(hash, step);
            match bucket.find(tag(hash), key) {
                None if bucket.is_marked() => {}
                found => return found,
            }
        }
        None
    }

    /// Is there room near the home of this hash?
    pub(super) fn has_room_near(self, hash: u64) -> bool {
        self.room(hash, REACH).is_some()
    }

    /// Is there any room?
    pub(super) fn has_room(self) -> bool {
        self.buckets
            .iter()
            .any(|bucket| bucket.free_slot().is_some())
    }

    /// Adds an item whose key is not there, if there is room near its home.
    #[must_use]
    pub(super) fn put_near(self, hash: u64, item: Item<'g>) -> bool {
        self.put_within(hash, item, REACH)
    }

    /// Adds an item whose key is not there. There is room.
    pub(super) fn put(self, hash: u64, item: Item<'g>) {
        let fits = self.put_within(hash, item, self.buckets.len());
        assert!(fits, "a segment without room");
    }

    #[inline]
    fn put_within(self, hash: u64, item: Item<'g>, reach: usize) -> bool {
        let Some((steps, slot)) = self.room(hash, reach) else {
            return false;
        };
        for step in 0..steps {
            // Before the item is put behind it: see the invariants.
            let first = &self.bucket(hash, step).0[0];
            first.store(first.load().marked());
        }
        let word = Word::item(item, tag(hash));
        let marked = slot.load().is_marked();
        slot.store(if marked { word.marked() } else { word });
        true
    }

    /// The first free slot from the key's home on, and how many buckets away it is.
    #[inline]
    fn room(self, hash: u64, reach: usize) -> Option<(usize, &'g Slot)> {
        (0..reach.min(self.buckets.len()))
            .find_map(|step| Some((step, self.bucket(hash, step).free_slot()?)))
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
    #[inline]
    fn find(&self, tag: u16, key: &[u8]) -> Option<(&Slot, Item<'_>)> {
        let mut matches = self.which(|word| word.has_tag(tag));
        while matches != 0 {
            let slot = &self.0[matches.trailing_zeros() as usize % BUCKET_SLOTS];
            let word = slot.load();
            if word.has_tag(tag)
                && let Some(item) = word.as_item()
                && item.has_key(key)
            {
                return Some((slot, item));
            }
            matches &= matches - 1;
        }
        None
    }

    #[inline]
    fn free_slot(&self) -> Option<&Slot> {
        let free = self.which(|word| word.is_free());
        (free != 0).then(|| &self.0[free.trailing_zeros() as usize % BUCKET_SLOTS])
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.0[0].load().is_marked()
    }

    /// The slots of which this holds, a bit for each: found without a branch, because which of
    /// them it will be cannot be foreseen.
    #[inline]
    fn which(&self, holds: impl Fn(Word<'_>) -> bool) -> u32 {
        let bits = self.0.iter().enumerate();
        bits.fold(0, |bits, (at, slot)| {
            bits | u32::from(holds(slot.load())) << at
        })
    }
}
