//! The rows of the big form: one that is there from the start, and one for each thread that claims.
//!
//! A lane belongs to the threads of one number: its gate is locked by whoever claims a name, hence
//! by every change that is not of the whole catalog. What such changes count is kept there too, so
//! that they write nothing in common; who wants to know asks all lanes.
//!
//! *Invariants.* Row 0, the trunk, gets names under the catalog's whole lock only. A lane's orders
//! are greater than all that were there when it was made. Lanes are made under the whole lock, and
//! stay as long as this block of them.
//!
//! *Locking.* The gates, in ascending order, after the catalog's lock.
#![expect(
    unsafe_code,
    reason = "blocks that readers may look at when they are replaced"
)]

use super::item::Item;
use super::iter::Items;
use super::row::{self, Row, RowHead};
use crate::catalog_primitive::{
    AtomicPtr, AtomicU32, AtomicU64, End, Gate, LANES, Ordering, dealloc,
};
use crate::epoch;
use std::alloc::{Layout, alloc, handle_alloc_error};
use std::array::from_fn;
use std::ptr::{self, NonNull};

/// All rows of a catalog.
pub(super) struct Lanes {
    trunk: AtomicPtr<RowHead>,
    trunk_tail: AtomicU32,
    /// Names that came, less those that went, by changes of the whole catalog.
    names: AtomicU64,
    /// The greatest order that such changes know of.
    last_order: AtomicU64,
    set: AtomicPtr<LaneSet>,
}

/// Where lanes and their rows are: written only when one is made or grows.
struct LaneSet {
    rows: [AtomicPtr<RowHead>; LANES],
    lanes: [AtomicPtr<Lane>; LANES],
    /// How many lanes there are.
    made: AtomicU32,
}

/// What the changes of one thread write.
#[repr(C, align(128))]
pub(super) struct Lane {
    pub(super) gate: Gate,
    /// Slots in use in its row.
    pub(super) tail: AtomicU32,
    /// Names that its threads took out, in this row or others.
    pub(super) removals: AtomicU32,
    names: AtomicU64,
    pub(super) last_order: AtomicU64,
    stamp: AtomicU64,
    tally: AtomicU64,
}

/// What claims have noted, of all lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Names that there are.
    pub names: u32,
    /// The greatest stamp; 0 if there is none.
    pub stamp: i64,
    /// All tallies.
    pub tally: i64,
}

fn make<T>(value: T) -> NonNull<T> {
    let layout = Layout::new::<T>();
    // SAFETY: no type here is of size 0.
    let memory = unsafe { alloc(layout) };
    let Some(made) = NonNull::new(memory.cast::<T>()) else {
        handle_alloc_error(layout)
    };
    // SAFETY: allocated for such a value.
    unsafe { made.write(value) };
    made
}

/// Makes the rows of a catalog: a trunk with so many names in use.
pub(super) fn allocate(trunk: NonNull<RowHead>, names: usize, last_order: u64) -> NonNull<Lanes> {
    make(Lanes {
        trunk: AtomicPtr::new(trunk.as_ptr()),
        trunk_tail: AtomicU32::new(names as u32),
        names: AtomicU64::new(names as u64),
        last_order: AtomicU64::new(last_order),
        set: AtomicPtr::new(ptr::null_mut()),
    })
}

/// Gives the memory of all rows and lanes back, not that of items.
///
/// # Safety
/// `all` comes from [`allocate`], nobody uses it any more, and this is called once for it.
pub(super) unsafe fn free(all: NonNull<Lanes>) {
    // SAFETY: not freed yet, says the caller.
    let lanes = unsafe { all.as_ref() };
    for number in 0..=LANES {
        if let Some(head) = lanes.row_head(number) {
            // SAFETY: nobody uses it any more.
            unsafe { row::free(head) };
        }
    }
    if let Some(set) = lanes.set_head() {
        for lane in lanes.lanes() {
            lane.gate.end();
            // SAFETY: as above.
            unsafe { dealloc(ptr::from_ref(lane).cast_mut().cast(), Layout::new::<Lane>()) };
        }
        // SAFETY: as above.
        let shared = unsafe { set.as_ref() };
        shared.rows.iter().for_each(AtomicPtr::end);
        shared.lanes.iter().for_each(AtomicPtr::end);
        // SAFETY: made with this layout.
        unsafe { dealloc(set.as_ptr().cast(), Layout::new::<LaneSet>()) };
    }
    lanes.trunk.end();
    lanes.set.end();
    // SAFETY: as above.
    unsafe { dealloc(all.as_ptr().cast(), Layout::new::<Lanes>()) };
}

unsafe fn free_retired(all: *mut ()) {
    if let Some(all) = NonNull::new(all.cast::<Lanes>()) {
        // SAFETY: retired once; the grace period is over.
        unsafe { free(all) };
    }
}

/// Lets those in who wait at gates, and frees rows and lanes after a grace period; not the items.
///
/// # Safety
/// No reader can find it from now on, the caller has locked its gates, and it is retired once.
pub(super) unsafe fn retire(all: NonNull<Lanes>) {
    // SAFETY: not freed before the grace period is over.
    unsafe { all.as_ref() }.unlock();
    // SAFETY: says the caller; memory can be freed on any thread.
    unsafe { epoch::retire_with(all.as_ptr().cast(), free_retired) };
}

impl Lane {
    fn new(last_order: u64) -> Self {
        Self {
            gate: Gate::new(),
            tail: AtomicU32::new(0),
            removals: AtomicU32::new(0),
            names: AtomicU64::new(0),
            last_order: AtomicU64::new(last_order),
            stamp: AtomicU64::new(0),
            tally: AtomicU64::new(0),
        }
    }

    /// Counts; the gate is locked.
    pub(super) fn count(&self, names: i64) {
        // Relaxed: sums are of no one moment.
        add(&self.names, names);
    }

    /// Keeps the greatest stamp, and adds to the tally; the gate is locked.
    pub(super) fn note(&self, stamp: i64, tally: i64) {
        if stamp > self.stamp.load(Ordering::Relaxed) as i64 {
            self.stamp.store(stamp as u64, Ordering::Relaxed);
        }
        if tally != 0 {
            add(&self.tally, tally);
        }
    }
}

fn add(sum: &AtomicU64, more: i64) {
    let sum_now = sum.load(Ordering::Relaxed);
    sum.store(sum_now.wrapping_add(more as u64), Ordering::Relaxed);
}

impl Lanes {
    fn set_head(&self) -> Option<NonNull<LaneSet>> {
        // Acquire pairs with the release in `add_lane`.
        NonNull::new(self.set.load(Ordering::Acquire))
    }

    fn set(&self) -> Option<&LaneSet> {
        // SAFETY: lives as long as this block.
        self.set_head().map(|set| unsafe { set.as_ref() })
    }

    /// The lane of this number, from 1 on, if it was made.
    #[inline]
    pub(super) fn lane(&self, number: usize) -> Option<&Lane> {
        // Acquire pairs with the release in `add_lane`.
        let lane = self.set()?.lanes[number - 1].load(Ordering::Acquire);
        // SAFETY: lives as long as this block.
        NonNull::new(lane).map(|lane| unsafe { lane.as_ref() })
    }

    /// Is there one lane only? For whoever has locked its gate: then nobody else claims anything.
    #[inline]
    pub(super) fn is_only_one(&self) -> bool {
        // Relaxed: it changes while all gates are locked.
        self.set()
            .is_some_and(|set| set.made.load(Ordering::Relaxed) == 1)
    }

    /// All lanes that were made.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let some = self.set().map(|_| 1..=LANES);
        some.into_iter()
            .flatten()
            .filter_map(|number| self.lane(number))
    }

    fn place(&self, number: usize) -> Option<&AtomicPtr<RowHead>> {
        match number.checked_sub(1) {
            None => Some(&self.trunk),
            Some(index) => Some(&self.set()?.rows[index]),
        }
    }

    /// The row of a lane, or the trunk (0).
    #[inline]
    pub(super) fn row_head(&self, number: usize) -> Option<NonNull<RowHead>> {
        // Acquire pairs with the release in `set_row`: it was filled before.
        NonNull::new(self.place(number)?.load(Ordering::Acquire))
    }

    /// As [`row_head`](Self::row_head), to look at.
    #[inline]
    pub(super) fn row(&self, number: usize) -> Option<Row<'_>> {
        // SAFETY: retired when it is replaced or this block is, hence freed after a guard from
        // before, or (for who has the lock, or a gate) not before it is unlocked.
        self.row_head(number)
            .map(|head| unsafe { Row::from_raw(head) })
    }

    /// Marks a name in its row: see [`Row::mark`].
    #[inline]
    pub(super) fn mark<'g>(&'g self, item: Item<'g>) {
        if let Some(row) = self.row(item.place().0) {
            row.mark(item);
        }
    }

    /// See [`Row::unmark`].
    pub(super) fn unmark<'g>(&'g self, item: Item<'g>) {
        if let Some(row) = self.row(item.place().0) {
            row.unmark(item);
        }
    }

    /// All rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let last = if self.set().is_some() { LANES } else { 0 };
        (0..=last).filter_map(|number| self.row(number))
    }

    /// Publishes another row, with so many slots in use. Returns the old one. The catalog's whole
    /// lock is held.
    pub(super) fn set_row(
        &self,
        number: usize,
        head: NonNull<RowHead>,
        tail: usize,
    ) -> Option<NonNull<RowHead>> {
        let old = self.row_head(number);
        if let Some(place) = self.place(number) {
            // Release: see `row_head`.
            place.store(head.as_ptr(), Ordering::Release);
        }
        self.set_tail(number, tail);
        old
    }

    fn tail_of(&self, number: usize) -> Option<&AtomicU32> {
        match number {
            0 => Some(&self.trunk_tail),
            _ => self.lane(number).map(|lane| &lane.tail),
        }
    }

    /// Slots in use; for whoever holds the lane, or the catalog's whole lock.
    pub(super) fn tail(&self, number: usize) -> usize {
        let tail = self.tail_of(number);
        tail.map_or(0, |tail| tail.load(Ordering::Relaxed) as usize)
    }

    pub(super) fn set_tail(&self, number: usize, tail: usize) {
        if let Some(place) = self.tail_of(number) {
            place.store(tail as u32, Ordering::Relaxed);
        }
    }

    /// Names in the row of a lane, or in the trunk (0), or few more. The catalog's whole lock is held.
    pub(super) fn names_about(&self, row: Row<'_>, number: usize) -> usize {
        // Relaxed, as the tail: under the lock. Mostly nobody has taken anything out of a directory that grows.
        let untouched = |lane: &Lane| lane.removals.load(Ordering::Relaxed) == 0;
        if number > 0 && self.lanes().all(untouched) {
            return self.tail(number);
        }
        row.count()
    }

    /// Makes the lane of this number, locked. The catalog's whole lock is held.
    pub(super) fn add_lane(&self, number: usize) {
        let last_order = self.last_order();
        let set = self.set_head().unwrap_or_else(|| {
            let set = make(LaneSet {
                rows: from_fn(|_| AtomicPtr::new(ptr::null_mut())),
                lanes: from_fn(|_| AtomicPtr::new(ptr::null_mut())),
                made: AtomicU32::new(0),
            });
            // Release: it was filled before.
            self.set.store(set.as_ptr(), Ordering::Release);
            set
        });
        let lane = make(Lane::new(last_order));
        // SAFETY: made above.
        unsafe { lane.as_ref() }.gate.lock();
        // SAFETY: lives as long as this block.
        let set = unsafe { set.as_ref() };
        // Release: see `lane`.
        set.lanes[number - 1].store(lane.as_ptr(), Ordering::Release);
        // Relaxed: whoever must know of it locks a gate that is locked here.
        let made = set.made.load(Ordering::Relaxed);
        set.made.store(made + 1, Ordering::Relaxed);
    }

    /// Waits until no claim is held, and lets none in.
    pub(super) fn lock(&self) {
        self.lanes().for_each(|lane| lane.gate.lock_first());
    }

    /// As [`lock`](Self::lock), unless there is one.
    pub(super) fn try_lock(&self) -> bool {
        for (locked, lane) in self.lanes().enumerate() {
            if !lane.gate.try_lock() {
                self.lanes()
                    .take(locked)
                    .for_each(|lane| lane.gate.unlock());
                return false;
            }
        }
        true
    }

    pub(super) fn unlock(&self) {
        self.lanes().for_each(|lane| lane.gate.unlock());
    }

    /// Counts what a change of the whole catalog does.
    pub(super) fn count(&self, names: i64) {
        add(&self.names, names);
    }

    /// Number of names.
    pub(super) fn names(&self) -> usize {
        let sum = self
            .lanes()
            .map(|lane| lane.names.load(Ordering::Relaxed))
            .fold(self.names.load(Ordering::Relaxed), u64::wrapping_add);
        // One that came may be seen later than its going.
        usize::try_from(sum as i64).unwrap_or(0)
    }

    /// The greatest order that a name has or ever had.
    pub(super) fn last_order(&self) -> u64 {
        // Acquire: who knows of an order finds the name.
        self.lanes()
            .map(|lane| lane.last_order.load(Ordering::Acquire))
            .fold(self.last_order.load(Ordering::Acquire), u64::max)
    }

    /// A change of the whole catalog has added this order: all lanes go on behind it.
    pub(super) fn set_last_order(&self, order: u64) {
        self.last_order.store(order, Ordering::Release);
        self.lanes()
            .for_each(|lane| lane.last_order.store(order, Ordering::Release));
    }

    /// What claims noted, if there ever was one.
    pub(super) fn sums(&self) -> Option<Sums> {
        self.set()?;
        let mut sums = Sums {
            names: self.names() as u32,
            ..Sums::default()
        };
        for lane in self.lanes() {
            let stamp = lane.stamp.load(Ordering::Relaxed) as i64;
            sums.stamp = sums.stamp.max(stamp);
            sums.tally = sums
                .tally
                .wrapping_add(lane.tally.load(Ordering::Relaxed) as i64);
        }
        Some(sums)
    }

    /// Forgets stamps and tallies. The catalog's whole lock is held.
    pub(super) fn forget_notes(&self) {
        for lane in self.lanes() {
            lane.stamp.store(0, Ordering::Relaxed);
            lane.tally.store(0, Ordering::Relaxed);
        }
    }

    /// The names of orders greater than `after`.
    pub(super) fn after(&self, after: u64) -> Items<'_> {
        let mut rows = self.rows();
        let Some(trunk) = rows.next() else {
            return Items::none();
        };
        rows.fold(Items::new(trunk.cursor(after), after), |items, row| {
            items.and(row.cursor(after))
        })
    }

    /// Slots of all rows that are in use, and all there are.
    pub(super) fn slots(&self) -> (usize, usize) {
        let rows = (0..=LANES).filter_map(|number| Some((number, self.row(number)?)));
        rows.fold((0, 0), |(used, all), (number, row)| {
            (used + self.tail(number), all + row.capacity())
        })
    }
}
