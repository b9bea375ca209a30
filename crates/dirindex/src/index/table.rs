//! The big form: a row, and a table that finds its items by key.
//!
//! The table is an extendible hash table: the top bits of a hash choose an entry, and the entry
//! leads to a segment. Several entries lead to one segment until that is split. So growing never
//! moves more than one segment's items. A small table is one segment that doubles.
//!
//! *Invariants.* A segment of depth `depth` is the target of all entries for hashes with the same
//! first `depth` bits. An item is in both the row and the table, except while the holder of the
//! lock adds or removes it.
//!
//! *Locking.* Entries are changed under the index's lock only, and read under a guard. What is
//! replaced is retired: a reader may follow an old entry to an old segment, which holds what it
//! held when it was replaced.
#![expect(unsafe_code, reason = "a header with entries behind it")]

use super::hash::NameHasher;
use super::item::Item;
use super::row::{Row, RowHead};
use super::segment::{self, Bucket, Segment};
use super::slot::Slot;
use crate::epoch;
use crate::primitive::{AtomicPtr, AtomicU64, End, Ordering, dealloc};
use std::alloc::{Layout, alloc, handle_alloc_error};
use std::mem::size_of;
use std::ptr::NonNull;

const ADDRESS: usize = (1 << 48) - 1;
const DEPTH_SHIFT: u32 = 48;
const SIZE_SHIFT: u32 = 56;

/// The header before the entries.
#[repr(C)]
pub(super) struct TableHead {
    row: AtomicPtr<RowHead>,
    hasher: NameHasher,
    /// There are 2^depth entries.
    pub(super) depth: u32,
    /// Buckets of all segments; only the holder of the lock uses it.
    pub(super) buckets: AtomicU64,
}

/// A pointer to a segment, with its depth and the logarithm of its size in the top bits.
#[repr(transparent)]
pub(super) struct Entry(AtomicPtr<Bucket>);

#[derive(Clone, Copy)]
pub(super) struct Lead {
    pub(super) first: NonNull<Bucket>,
    pub(super) depth: u32,
    pub(super) size_log: u32,
}

impl Lead {
    fn pack(self) -> *mut Bucket {
        let first = self.first.as_ptr();
        assert!(
            first.addr() & !ADDRESS == 0,
            "an address of more than 48 bits"
        );
        let top = (self.depth as usize) << DEPTH_SHIFT | (self.size_log as usize) << SIZE_SHIFT;
        first.map_addr(|address| address | top)
    }
}

impl Entry {
    #[inline]
    pub(super) fn load(&self) -> Lead {
        // Acquire pairs with the release in `store`: the segment was filled before.
        let raw = self.0.load(Ordering::Acquire);
        let first = raw.map_addr(|address| address & ADDRESS);
        Lead {
            first: NonNull::new(first).expect("an entry always leads to a segment"),
            depth: (raw.addr() >> DEPTH_SHIFT & 0xff) as u32,
            size_log: (raw.addr() >> SIZE_SHIFT) as u32,
        }
    }

    pub(super) fn store(&self, lead: Lead) {
        // Release: see `load`.
        self.0.store(lead.pack(), Ordering::Release);
    }
}

fn layout(depth: u32) -> Layout {
    let entries = Layout::array::<Entry>(1 << depth).expect("names are limited");
    let head = Layout::new::<TableHead>();
    let (whole, offset) = head.extend(entries).expect("names are limited");
    debug_assert_eq!(offset, size_of::<TableHead>());
    whole
}

/// A table to read, or to change by the holder of the lock.
#[derive(Clone, Copy)]
pub(super) struct Table<'g> {
    pub(super) head: &'g TableHead,
    pub(super) entries: &'g [Entry],
}

/// Makes a table of 2^`depth` entries; `entry` gives each by its index.
pub(super) fn allocate(
    row: NonNull<RowHead>,
    depth: u32,
    buckets: usize,
    mut entry: impl FnMut(usize) -> Lead,
) -> NonNull<TableHead> {
    let layout = layout(depth);
    // SAFETY: the layout is not of size 0: it has a header.
    let memory = unsafe { alloc(layout) };
    let Some(head) = NonNull::new(memory.cast::<TableHead>()) else {
        handle_alloc_error(layout)
    };
    let fresh = TableHead {
        row: AtomicPtr::new(row.as_ptr()),
        hasher: NameHasher::new(),
        depth,
        buckets: AtomicU64::new(buckets as u64),
    };
    // SAFETY: allocated above with room and alignment for a header.
    unsafe { head.write(fresh) };
    // SAFETY: the entries follow the header within the allocation.
    let first = unsafe { head.add(1) }.cast::<Entry>();
    for index in 0..1 << depth {
        // SAFETY: below the number of entries allocated.
        let place = unsafe { first.add(index) };
        // SAFETY: allocated, aligned, and not shared yet.
        unsafe { place.write(Entry(AtomicPtr::new(entry(index).pack()))) };
    }
    head
}

/// Frees a table's memory, without its segments and its row.
///
/// # Safety
/// `head` comes from this module, no thread uses it any more, and this is called once for it.
pub(super) unsafe fn free(head: NonNull<TableHead>) {
    // SAFETY: not freed yet, by the caller's promise.
    let table: Table<'_> = unsafe { Table::from_raw(head) };
    let depth = table.head.depth;
    table.head.row.end();
    table.entries.iter().for_each(|entry| entry.0.end());
    // SAFETY: allocated with this layout; the header has nothing to drop.
    unsafe { dealloc(head.as_ptr().cast(), layout(depth)) };
}

/// Frees the memory of a table and of its segments, without its row.
///
/// # Safety
/// As for [`free`], and no thread uses the segments any more.
pub(super) unsafe fn free_whole(head: NonNull<TableHead>) {
    // SAFETY: not freed yet, by the caller's promise.
    let table: Table<'_> = unsafe { Table::from_raw(head) };
    for lead in table.segments() {
        // SAFETY: each segment comes once, and no thread uses it.
        unsafe { segment::free(lead.first, lead.size_log) };
    }
    // SAFETY: the caller's promise.
    unsafe { free(head) };
}

unsafe fn free_retired(head: *mut ()) {
    if let Some(head) = NonNull::new(head.cast::<TableHead>()) {
        // SAFETY: retired once; the grace period is over.
        unsafe { free(head) };
    }
}

/// Frees a table after a grace period; its segments and its row live on.
///
/// # Safety
/// No reader can find it from now on, and it is retired once.
pub(super) unsafe fn retire(head: NonNull<TableHead>) {
    // SAFETY: the caller's promise; memory can be freed on any thread.
    unsafe { epoch::retire_with(head.as_ptr().cast(), free_retired) };
}

/// Frees a table and its segments after a grace period; its row lives on.
///
/// # Safety
/// As for [`retire`], of the segments as well.
pub(super) unsafe fn retire_whole(head: NonNull<TableHead>) {
    // SAFETY: live until the grace period is over.
    let table: Table<'_> = unsafe { Table::from_raw(head) };
    for lead in table.segments() {
        // SAFETY: each segment comes once, and by the caller's promise readers cannot find it any
        // more.
        unsafe { segment::retire(lead.first, lead.size_log) };
    }
    // SAFETY: the caller's promise.
    unsafe { retire(head) };
}

impl<'g> Table<'g> {
    /// The table at this address.
    ///
    /// # Safety
    /// `head` comes from this module; neither it nor anything found in it is freed during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(head: NonNull<TableHead>) -> Self {
        // SAFETY: live by the caller's promise.
        let shared: &'g TableHead = unsafe { head.as_ref() };
        // SAFETY: the entries follow the header within the allocation.
        let first = unsafe { head.add(1) }.cast::<Entry>();
        // SAFETY: as many entries were allocated and written.
        let entries = unsafe { std::slice::from_raw_parts(first.as_ptr(), 1 << shared.depth) };
        Self {
            head: shared,
            entries,
        }
    }

    /// The row of the same names.
    #[inline]
    pub(super) fn row(self) -> Row<'g> {
        // SAFETY: a row is retired when the table gets another, so it is freed after every guard
        // made before that.
        unsafe { Row::from_raw(self.row_head()) }
    }

    #[inline]
    pub(super) fn row_head(self) -> NonNull<RowHead> {
        // Acquire pairs with the release in `set_row`.
        let row = self.head.row.load(Ordering::Acquire);
        NonNull::new(row).expect("a table always has a row")
    }

    /// Publishes another row.
    pub(super) fn set_row(self, row: NonNull<RowHead>) {
        // Release: it was filled before.
        self.head.row.store(row.as_ptr(), Ordering::Release);
    }

    /// The hash of a key.
    #[inline]
    pub(super) fn hash(self, key: &[u8]) -> u64 {
        self.head.hasher.hash(key)
    }

    #[inline]
    pub(super) fn index(self, hash: u64) -> usize {
        // Shifted in two steps, because the depth may be 0.
        (hash >> 1 >> (u64::BITS - 1 - self.head.depth)) as usize
    }

    #[inline]
    pub(super) fn segment(self, hash: u64) -> (Lead, Segment<'g>) {
        let lead = self.entries[self.index(hash)].load();
        // SAFETY: in the table, so it is retired later, and freed after every guard made before
        // that.
        (lead, unsafe {
            Segment::from_raw(lead.first, lead.size_log)
        })
    }

    /// The bucket where a search for this key begins.
    #[inline]
    pub(super) fn home(self, key: &[u8]) -> &'g Bucket {
        let hash = self.hash(key);
        self.segment(hash).1.bucket(hash, 0)
    }

    /// The item of a key; waits while the key changes in a rename.
    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Option<Item<'g>> {
        let hash = self.hash(key);
        self.segment(hash).1.get(hash, key)
    }

    /// The slot and the item of a key.
    #[inline]
    pub(super) fn find(self, hash: u64, key: &[u8]) -> Option<(&'g Slot, Item<'g>)> {
        self.segment(hash).1.find(hash, key)
    }

    /// Adds an item with a new key, unless the table must grow for it.
    #[must_use]
    pub(super) fn put_near(self, hash: u64, item: Item<'g>) -> bool {
        self.segment(hash).1.put_near(hash, item)
    }

    /// Adds an item with a new key, after [`make_room`](Self::make_room) for its hash.
    pub(super) fn put(self, hash: u64, item: Item<'g>) {
        self.segment(hash).1.put(hash, item);
    }

    /// Buckets of all segments.
    pub(super) fn buckets(self) -> usize {
        // Relaxed: under the index's lock.
        self.head.buckets.load(Ordering::Relaxed) as usize
    }

    fn segments(self) -> impl Iterator<Item = Lead> {
        let depth = self.head.depth;
        let mut index = 0;
        std::iter::from_fn(move || {
            let lead = self.entries.get(index)?.load();
            index += 1 << (depth - lead.depth);
            Some(lead)
        })
    }
}
