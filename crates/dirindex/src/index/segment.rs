//! A part of the hash table: a few buckets, in which an item never moves.
//!
//! A key's home is one bucket, chosen by its hash. If that is full, its item lies in one of the
//! next. A bucket that was ever passed over is marked, so a search knows where it ends. Because
//! items do not move, readers need no lock. A reader retries only while a rename is changing its
//! key.
//!
//! *Invariants.* An item lies in one of the buckets from its home on. All buckets from its home to
//! the one before its own were marked before it was put there. The version of a bucket is odd while
//! names with that home change together with others.
//!
//! *Locking.* A bucket is changed under the index's lock, and read under a guard.
#![expect(unsafe_code, reason = "an array of lines whose length the owner knows")]

use super::item::Item;
use super::slot::{Slot, Word};
use crate::epoch;
use crate::primitive::{AtomicU32, BUCKET_SLOTS, MODEL, Ordering, REACH, dealloc, fence, pause};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

/// One cache line: some slots, and their version.
#[repr(C, align(64))]
pub(super) struct Bucket {
    version: AtomicU32,
    slots: [Slot; BUCKET_SLOTS],
}

const _: () = assert!(MODEL || size_of::<Bucket>() == 64);

fn layout(size_log: u32) -> Layout {
    Layout::array::<Bucket>(1 << size_log).expect("names are limited")
}

/// Allocates an empty segment of 2^`size_log` buckets.
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
            unsafe { bucket.write(Bucket::new()) };
        }
    }
    first
}

/// Frees a segment's memory, without its items.
///
/// # Safety
/// It comes from [`allocate`] with this size, no thread uses it any more, and it is freed once.
pub(super) unsafe fn free(first: NonNull<Bucket>, size_log: u32) {
    if MODEL {
        // SAFETY: no thread uses it any more, by the caller's promise.
        let segment: Segment<'_> = unsafe { Segment::from_raw(first, size_log) };
        let slots = segment.buckets.iter().flat_map(|bucket| &bucket.slots);
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
    // The size goes into address bits that are 0 by alignment; there are far fewer than 2^64 slots.
    let packed = first
        .as_ptr()
        .map_addr(|address| address | size_log as usize);
    // SAFETY: the caller's promise; memory can be freed on any thread.
    unsafe { epoch::retire_with(packed.cast(), free_retired) };
}

/// A segment to read, or to change by the holder of the lock.
#[derive(Clone, Copy)]
pub(super) struct Segment<'g> {
    buckets: &'g [Bucket],
}

/// This key is changing together with another.
struct Changing;

/// The part of a hash that is a slot's tag: between the bits that choose the segment and those that
/// choose the bucket.
#[inline]
fn tag(hash: u64) -> u16 {
    (hash >> 24) as u16
}

impl<'g> Segment<'g> {
    /// The segment at this address.
    ///
    /// # Safety
    /// It comes from [`allocate`] with this size; neither it nor an item found in it is freed
    /// during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(first: NonNull<Bucket>, size_log: u32) -> Self {
        // SAFETY: allocated as zeros, which are empty slots.
        let buckets = unsafe { std::slice::from_raw_parts(first.as_ptr(), 1 << size_log) };
        Self { buckets }
    }

    /// The bucket `step` buckets from the key's home.
    #[inline]
    pub(super) fn bucket(self, hash: u64, step: usize) -> &'g Bucket {
        // The lowest bits.
        &self.buckets[(hash as usize).wrapping_add(step) & (self.buckets.len() - 1)]
    }

    /// The item of a key. Waits while the key is renamed together with another.
    #[inline]
    pub(super) fn get(self, hash: u64, key: &[u8]) -> Option<Item<'g>> {
        match self.try_get(hash, key) {
            Ok(found) => found,
            Err(Changing) => self.get_slow(hash, key),
        }
    }

    /// The item of a key, unless that is changing.
    #[inline]
    fn try_get(self, hash: u64, key: &[u8]) -> Result<Option<Item<'g>>, Changing> {
        let home = self.bucket(hash, 0);
        // Acquire pairs with the release at the end of a change: all of it is visible.
        let version = home.version.load(Ordering::Acquire);
        if version & 1 == 1 {
            return Err(Changing);
        }
        let found = self.find(hash, key);
        // Pairs with the fence at the begin of a change: a reader that saw any of its stores sees
        // the version odd.
        fence(Ordering::Acquire);
        if home.version.load(Ordering::Relaxed) != version {
            return Err(Changing);
        }
        Ok(found.map(|(_, item)| item))
    }

    #[cold]
    #[inline(never)]
    fn get_slow(self, hash: u64, key: &[u8]) -> Option<Item<'g>> {
        let mut looks = 0;
        loop {
            looks += 1;
            pause(looks);
            if let Ok(found) = self.try_get(hash, key) {
                return found;
            }
        }
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

    /// Adds an item with a new key, if there is room near its home.
    #[must_use]
    pub(super) fn put_near(self, hash: u64, item: Item<'g>) -> bool {
        self.put_within(hash, item, REACH)
    }

    /// Adds an item with a new key. There is room.
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
            self.bucket(hash, step).mark();
        }
        self.put_into(slot, hash, item);
        true
    }

    /// The first free slot from the key's home on, and its distance in buckets.
    #[inline]
    fn room(self, hash: u64, reach: usize) -> Option<(usize, &'g Slot)> {
        (0..reach.min(self.buckets.len()))
            .find_map(|step| Some((step, self.bucket(hash, step).free_slot()?)))
    }

    /// Fills a free slot.
    #[inline]
    fn put_into(self, slot: &Slot, hash: u64, item: Item<'_>) {
        let word = Word::item(item, tag(hash));
        let marked = slot.load().is_marked();
        slot.store(if marked { word.marked() } else { word });
    }

    /// All items, prefetched for a caller that reads each.
    pub(super) fn prefetched_items(self) -> impl Iterator<Item = Item<'g>> {
        self.items().for_each(Item::fetch);
        self.items()
    }

    /// All items.
    fn items(self) -> impl Iterator<Item = Item<'g>> {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.slots);
        slots.filter_map(|slot| slot.load().as_item())
    }
}

/// Empties a slot of a segment.
pub(super) fn clear(slot: &Slot) {
    let nothing = Word::nothing();
    let marked = slot.load().is_marked();
    slot.store(if marked { nothing.marked() } else { nothing });
}

/// While it lives, readers of keys with these homes wait.
pub(super) struct Change<'a>([Option<&'a AtomicU32>; 2]);

impl<'a> Change<'a> {
    pub(super) fn begin(one: &'a Bucket, other: &'a Bucket) -> Self {
        let other = (!std::ptr::eq(one, other)).then_some(&other.version);
        Self::of([Some(&one.version), other])
    }

    /// The same, given the versions themselves.
    pub(super) fn of(versions: [Option<&'a AtomicU32>; 2]) -> Self {
        for version in versions.into_iter().flatten() {
            let odd = version.load(Ordering::Relaxed).wrapping_add(1);
            version.store(odd, Ordering::Relaxed);
        }
        // Pairs with the fence of readers.
        fence(Ordering::Release);
        Self(versions)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        for version in self.0.into_iter().flatten() {
            let even = version.load(Ordering::Relaxed).wrapping_add(1);
            // Release pairs with the acquire of readers.
            version.store(even, Ordering::Release);
        }
    }
}

impl Bucket {
    fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            slots: std::array::from_fn(|_| Slot::new()),
        }
    }

    /// Makes searches continue behind it.
    fn mark(&self) {
        let first = &self.slots[0];
        first.store(first.load().marked());
    }

    #[inline]
    fn find(&self, tag: u16, key: &[u8]) -> Option<(&Slot, Item<'_>)> {
        let mut matches = self.which(|word| word.has_tag(tag));
        while matches != 0 {
            // There are not more bits than slots.
            let slot = self.slots.get(matches.trailing_zeros() as usize)?;
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
        // If there is none, the index is out of bounds.
        self.slots.get(free.trailing_zeros() as usize)
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.slots[0].load().is_marked()
    }

    /// The slots for which `holds` is true, a bit for each. Computed without a branch, because the
    /// result cannot be predicted.
    #[inline]
    fn which(&self, holds: impl Fn(Word<'_>) -> bool) -> u32 {
        let bits = self.slots.iter().enumerate();
        bits.fold(0, |bits, (at, slot)| {
            bits | u32::from(holds(slot.load())) << at
        })
    }
}
