//! What is held of a claim of one name or two: a gate, latches, and where the names are or may be.
//!
//! *Invariants.* While it is held nobody moves a name of the catalog, and nobody else
//! changes the claimed names, or the buckets in which they are or would be.
//!
//! *Locking.* See [`claim`](super::claim): the gate is locked before this is made, and unlocked with it.
#![expect(unsafe_code, reason = "readers may look at all that is changed here")]

use super::item::{Item, KEY_MAX, TAG_END, VALUE_END};
use super::lanes::{Lane, Lanes};
use super::outcome::{InsertError, Removed};
use super::reshape::is_wasteful;
use super::row::Row;
use super::segment::{self, Bucket, Change, Segment};
use super::slot::Slot;
use super::table::Table;
use super::writer::{ORDER_END, fresh};
use crate::catalog_primitive::{LANES, Ordering, SIZE_LOG_MAX};
use std::marker::PhantomData;
use std::ptr;

/// What whoever changes another name is told.
pub(super) const UNCLAIMED: &str = "only what was claimed is changed";
/// Orders of a lane are its number, modulo this: no two lanes deal the same.
const ORDER_STEP: u64 = 32;
const _: () = assert!((LANES as u64) < ORDER_STEP);
/// How many removals of a lane come between two looks at whether there is too much memory.
const LOOK_AFTER: u32 = 32;

/// Small, since every change of a name begins with making one.
pub(super) struct Part<'a> {
    lanes: &'a Lanes,
    pub(super) lane: &'a Lane,
    number: usize,
    name: Claimed<'a>,
    /// Only renames have one.
    other: Option<Box<Claimed<'a>>>,
    /// There is no other lane: the gate is as good as all latches.
    alone: bool,
    pub(super) wasteful: bool,
    own_thread: PhantomData<*mut ()>,
}

/// A name that was claimed.
pub(super) struct Claimed<'a> {
    pub(super) key: &'a [u8],
    hash: u64,
    segment: Segment<'a>,
    found: Option<&'a Slot>,
    /// Else where it could be put, and how many buckets from home that is.
    room: Option<(usize, &'a Slot)>,
    /// A bit for each step from home to a bucket whose latch is held on its account.
    held: u32,
}

const _: () = assert!(1 << SIZE_LOG_MAX <= u32::BITS, "a step without a bit");

impl<'a> Claimed<'a> {
    #[inline]
    fn new(key: &'a [u8], hash: u64, table: Table<'a>) -> Self {
        Self {
            key,
            hash,
            segment: table.segment(hash).1,
            found: None,
            room: None,
            held: 0,
        }
    }

    #[inline]
    fn bucket(&self, step: usize) -> &'a Bucket {
        self.segment.bucket(self.hash, step)
    }

    /// What was found, as it is now: whoever has claimed it knows all that has changed.
    #[inline]
    pub(super) fn item(&self) -> Option<Item<'a>> {
        self.found?.load().as_item()
    }

    /// Was it found, or put there since?
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.found.is_some()
    }

    /// The buckets that are held on its account.
    fn held(&self) -> impl Iterator<Item = &'a Bucket> {
        let mut left = self.held;
        std::iter::from_fn(move || {
            let step = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(self.bucket(step as usize))
        })
    }

    fn hold(&mut self, step: usize) {
        self.held |= 1 << step;
    }
}

/// One of the names of a claim.
#[derive(Clone, Copy)]
enum Which {
    Name,
    Other,
}

/// Why no part could be taken.
pub(super) enum Missed {
    /// Nothing to take a part of.
    Small,
    /// What it takes is not there yet.
    Lacks,
    /// Somebody holds what can only be tried, or has changed the form.
    Busy,
}

impl<'a> Part<'a> {
    /// Of these lanes, of which the one of this number was just locked, and with nothing settled.
    #[inline]
    pub(super) fn new(
        table: Table<'a>,
        lane: &'a Lane,
        number: usize,
        key: &'a [u8],
        hash: u64,
    ) -> Self {
        let lanes = table.lanes();
        Self {
            lanes,
            lane,
            number,
            name: Claimed::new(key, hash, table),
            other: None,
            alone: lanes.is_only_one(),
            wasteful: false,
            own_thread: PhantomData,
        }
    }

    /// Finds both names, or room for them, and holds what that takes. The table is as it was when the
    /// gate was locked.
    ///
    /// # Errors
    /// What is missing, or busy.
    #[inline]
    pub(super) fn settle(
        &mut self,
        table: Table<'a>,
        other: Option<&'a [u8]>,
    ) -> Result<(), Missed> {
        if let Some(key) = other {
            self.other = Some(Box::new(Claimed::new(key, table.hash(key), table)));
        }
        if !self.alone {
            self.lock_homes();
        }
        self.find(Which::Name)?;
        if self.other.is_some() {
            self.find(Which::Other)?;
        }
        Ok(())
    }

    /// Locks the homes of all names, by address.
    fn lock_homes(&mut self) {
        let home = self.name.bucket(0);
        let Some(other) = &mut self.other else {
            home.latch.lock();
            return self.name.hold(0);
        };
        let other_home = other.bucket(0);
        if ptr::from_ref(home) <= ptr::from_ref(other_home) {
            home.latch.lock();
            self.name.hold(0);
        }
        if !ptr::eq(home, other_home) {
            other_home.latch.lock();
            other.hold(0);
        }
        if ptr::from_ref(home) > ptr::from_ref(other_home) {
            home.latch.lock();
            self.name.hold(0);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Claimed<'a>> {
        std::iter::once(&self.name).chain(self.other.as_deref())
    }

    fn holds(&self, bucket: &Bucket) -> bool {
        self.alone
            || self
                .names()
                .flat_map(Claimed::held)
                .any(|held| ptr::eq(held, bucket))
    }

    fn which(&mut self, which: Which) -> &mut Claimed<'a> {
        match (which, &mut self.other) {
            (Which::Other, Some(other)) => other,
            _ => &mut self.name,
        }
    }

    /// Holds one more bucket near a name's home, if nobody else does.
    fn try_hold(&mut self, which: Which, step: usize) -> bool {
        let bucket = self.which(which).bucket(step);
        if self.holds(bucket) {
            return true;
        }
        let locked = bucket.latch.try_lock();
        if locked {
            self.which(which).hold(step);
        }
        locked
    }

    /// Finds a name, or room for it, and holds the buckets that either takes.
    #[inline]
    fn find(&mut self, which: Which) -> Result<(), Missed> {
        let name = self.which(which);
        let (key, hash, segment) = (name.key, name.hash, name.segment);
        if let Some((step, slot, _)) = segment.locate(hash, key) {
            // Nobody else changes what this key leads to: its home is held.
            if step > 0 && !self.try_hold(which, step) {
                return Err(Missed::Busy);
            }
            self.which(which).found = Some(slot);
            return Ok(());
        }
        if self.end().is_none() {
            return Err(Missed::Lacks);
        }
        // The home itself is held.
        if let Some(slot) = segment.bucket(hash, 0).free_slot() {
            self.which(which).room = Some((0, slot));
            return Ok(());
        }
        for step in 1..segment.reach() {
            if !self.try_hold(which, step) {
                return Err(Missed::Busy);
            }
            if let Some(slot) = segment.bucket(hash, step).free_slot() {
                self.which(which).room = Some((step, slot));
                return Ok(());
            }
        }
        Err(Missed::Lacks)
    }

    /// The lane's row and its first slot that is not in use, if there is one.
    #[inline]
    fn end(&self) -> Option<(Row<'a>, usize)> {
        // Relaxed: the gate is locked.
        let tail = self.lane.tail.load(Ordering::Relaxed) as usize;
        let row = self.lanes.row(self.number)?;
        (tail < row.capacity()).then_some((row, tail))
    }

    #[inline]
    pub(super) fn name(&self, key: &[u8]) -> &Claimed<'a> {
        // Mostly it is the very one that was claimed.
        if ptr::eq(self.name.key, key) || self.name.key == key {
            return &self.name;
        }
        let other = self.other.as_deref().filter(|other| other.key == key);
        other.expect(UNCLAIMED)
    }

    fn set_found(&mut self, key: &[u8], found: Option<&'a Slot>) {
        let other = self.other.as_deref_mut();
        for name in std::iter::once(&mut self.name).chain(other) {
            if ptr::eq(name.key, key) || name.key == key {
                name.found = found;
            }
        }
    }

    pub(super) fn next_order(&self, floor: u64) -> u64 {
        // Relaxed: the gate is locked.
        let last = self.lane.last_order.load(Ordering::Relaxed);
        let least = floor.max(last + 1);
        least + (self.number as u64).wrapping_sub(least) % ORDER_STEP
    }

    /// Puts an item where the key's searches meet it. Its place is held.
    #[inline]
    fn put(&mut self, key: &[u8], item: Item<'a>) {
        let name = &mut self.name;
        if self.other.is_none()
            && let Some((0, slot)) = name.room
        {
            debug_assert!(name.key == key && slot.load().is_free());
            name.segment.put_into(slot, name.hash, item);
            name.found = Some(slot);
        } else {
            self.put_somewhere(key, item);
        }
    }

    /// As [`put`](Self::put), of two names, or beyond the home.
    #[inline(never)]
    fn put_somewhere(&mut self, key: &[u8], item: Item<'a>) {
        let name = self.name(key);
        let (hash, segment) = (name.hash, name.segment);
        // Of two names the first may have taken it.
        let known = name.room.filter(|(_, slot)| slot.load().is_free());
        let search = || {
            (0..segment.reach()).find_map(|step| {
                let bucket = segment.bucket(hash, step);
                let held = self.holds(bucket);
                Some((step, bucket.free_slot().filter(|_| held)?))
            })
        };
        let room = known.or_else(search);
        let (steps, slot) = room.expect("room was made with the claim");
        for step in 0..steps {
            // Before the item is put behind it: see the invariants of `segment`.
            segment.bucket(hash, step).mark();
        }
        segment.put_into(slot, hash, item);
        self.set_found(key, Some(slot));
    }

    pub(super) fn insert(
        &mut self,
        key: &[u8],
        order: u64,
        value: u64,
        tag: u8,
    ) -> Result<(), InsertError> {
        if key.is_empty() || key.len() > KEY_MAX || value >= VALUE_END || tag >= TAG_END {
            return Err(InsertError::Unfit);
        }
        if order >= ORDER_END {
            return Err(InsertError::Full);
        }
        if self.name(key).found.is_some() {
            return Err(InsertError::Taken);
        }
        if order < self.next_order(order) {
            return Err(InsertError::OutOfOrder);
        }
        let Some((row, tail)) = self.end() else {
            // It was there when it was claimed: no room was made.
            return Err(InsertError::Full);
        };
        let item = fresh(key, order, value, tag);
        self.put(key, item);
        row.append(tail, item, self.number);
        self.lane.tail.store((tail + 1) as u32, Ordering::Relaxed);
        self.lane.count(1);
        // Release: see `Lanes::last_order`.
        self.lane.last_order.store(order, Ordering::Release);
        Ok(())
    }

    /// Takes a name out of table and row, not yet retired.
    fn take_out(&mut self, key: &[u8]) -> Option<Item<'a>> {
        let name = self.name(key);
        let (slot, item) = (name.found?, name.item()?);
        let row = self.lanes.row(item.place().0);
        row.inspect(|row| row.mark(item));
        segment::clear(slot);
        row.inspect(|row| row.vacate(item));
        self.set_found(key, None);
        self.lane.count(-1);
        // Relaxed: the gate is locked.
        let removals = self.lane.removals.load(Ordering::Relaxed).wrapping_add(1);
        self.lane.removals.store(removals, Ordering::Relaxed);
        if removals.is_multiple_of(LOOK_AFTER) {
            self.wasteful = is_wasteful(self.lanes.names(), self.lanes.slots());
        }
        Some(item)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Removed> {
        let item = self.take_out(key)?;
        let removed = Removed::of(item);
        // SAFETY: taken out of row and table above; not used below.
        unsafe { item.retire() };
        Some(removed)
    }

    fn change(&self, one: &[u8], other: &[u8]) -> Change<'a> {
        let [one, other] = [one, other].map(|key| {
            let name = self.name(key);
            name.segment.bucket(name.hash, 0)
        });
        Change::begin(one, other)
    }

    pub(super) fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let (Some(first), Some(second)) = (self.name(one).item(), self.name(other).item()) else {
            return false;
        };
        let both = [first, second];
        both.into_iter().for_each(|item| self.lanes.mark(item));
        {
            let _change = self.change(one, other);
            let (value, tag) = first.payload();
            let (value, tag) = second.set_payload(value, tag);
            first.set_payload(value, tag);
        }
        both.into_iter().for_each(|item| self.lanes.unmark(item));
        true
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        if to.is_empty() || to.len() > KEY_MAX || self.name(to).found.is_some() {
            return None;
        }
        let source = self.name(from);
        let (slot, old) = (source.found?, source.item()?);
        let order = old.order();
        let (value, tag) = old.payload();
        let new = fresh(to, order, value, tag);
        self.lanes.mark(old);
        {
            let _change = self.change(from, to);
            self.put(to, new);
            if let Some(row) = self.lanes.row(old.place().0) {
                row.swap(old, new);
            }
            segment::clear(slot);
        }
        self.set_found(from, None);
        // SAFETY: taken out of row and table above; not used below.
        unsafe { old.retire() };
        Some(order)
    }

    pub(super) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        let (source, target) = (self.name(from).item()?, self.name(to).item()?);
        if from == to {
            return None;
        }
        let (moved, replaced) = (Removed::of(source), Removed::of(target));
        [source, target]
            .into_iter()
            .for_each(|item| self.lanes.mark(item));
        {
            let _change = self.change(from, to);
            target.set_payload(moved.value, moved.tag);
            self.take_out(from);
        }
        self.lanes.unmark(target);
        // SAFETY: taken out of row and table above; not used below.
        unsafe { source.retire() };
        Some((moved, replaced))
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.alone {
            let held = self.names().flat_map(Claimed::held);
            held.for_each(|bucket| bucket.latch.unlock());
        }
        self.lane.gate.unlock();
    }
}
