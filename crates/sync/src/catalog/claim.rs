//! The right to change one name or two, beside others who change other names.
//!
//! *Invariants.* While a claim of a part is held, nobody moves a name of the catalog, and nobody else
//! changes the claimed names, or the buckets in which they are or would be.
//!
//! *Locking.* The gate of the thread's lane, then the latches of the names' home buckets by address; none
//! as long as there is one lane, since another is made with its gate locked.
//! Latches of further buckets are tried: who does not get one lets go of all and begins anew.
#![expect(unsafe_code, reason = "readers may look at all that is changed here")]

use super::Catalog;
use super::body::Form;
use super::item::{Item, KEY_MAX, TAG_END, VALUE_END};
use super::lanes::{Lane, Lanes};
use super::outcome::{InsertError, Removed};
use super::reshape::is_wasteful;
use super::segment::{self, Bucket, Change, Segment};
use super::slot::Slot;
use super::table::Table;
use super::writer::{CatalogWriter, ORDER_END, fresh};
use crate::catalog_primitive::{LANES, Ordering, lane, pause};
use crate::epoch;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// Orders of a lane are its number, modulo this: no two lanes deal the same.
const ORDER_STEP: u64 = 256;
const _: () = assert!((LANES as u64) < ORDER_STEP);
/// How many removals of a lane come between two looks at whether there is too much memory.
const LOOK_AFTER: u32 = 32;

/// The right to change one name or two; others wait for it until this is dropped.
///
/// It belongs to the thread that got it. Of a catalog that is small it is the right to change all
/// names, which makes no difference but to those who wait.
pub struct Claim<'a>(Hold<'a>);

enum Hold<'a> {
    Whole(CatalogWriter<'a>),
    Part(Part<'a>),
}

/// The buckets whose latches a claim holds: two homes, and what is near.
type Held<'a> = [Option<&'a Bucket>; 8];

struct Part<'a> {
    lanes: &'a Lanes,
    lane: &'a Lane,
    number: usize,
    names: [Option<Claimed<'a>>; 2],
    held: Held<'a>,
    /// There is no other lane: the gate is as good as all latches.
    alone: bool,
    wasteful: bool,
    own_thread: PhantomData<*mut ()>,
}

/// A name that was claimed.
struct Claimed<'a> {
    key: &'a [u8],
    hash: u64,
    segment: Segment<'a>,
    found: Option<(&'a Slot, Item<'a>)>,
}

/// Why no part could be taken.
enum Missed {
    /// Nothing to take a part of.
    Small,
    /// What it takes is not there yet.
    Lacks,
    /// Somebody holds what can only be tried, or has changed the form.
    Busy,
}

impl Catalog {
    /// Waits for the right to change the name with this key, and perhaps that with another.
    ///
    /// May wait under a guard of its own for others who hold claims: those must not wait for
    /// anything that needs time.
    #[must_use]
    pub fn claim<'a>(&'a self, key: &'a [u8], other: Option<&'a [u8]>) -> Claim<'a> {
        let mut looks = 0;
        loop {
            match Part::take(self, key, other) {
                Ok(part) => return Claim(Hold::Part(part)),
                Err(Missed::Small) => {
                    let writer = self.lock();
                    // It may have grown meanwhile.
                    if !matches!(self.body.load(), Form::Big(_)) {
                        return Claim(Hold::Whole(writer));
                    }
                }
                Err(Missed::Lacks) => {
                    let mut writer = self.lock();
                    let keys = [Some(key), other];
                    keys.into_iter()
                        .flatten()
                        .for_each(|key| writer.provide(lane() + 1, key));
                }
                Err(Missed::Busy) => {
                    looks += 1;
                    pause(looks);
                }
            }
        }
    }
}

impl<'a> Part<'a> {
    fn take(catalog: &'a Catalog, key: &'a [u8], other: Option<&'a [u8]>) -> Result<Self, Missed> {
        // Until the gate is locked; and what is found near a name may be somebody else's.
        let _guard = epoch::pin();
        let form = catalog.body.load();
        let Form::Big(head) = form else {
            return Err(Missed::Small);
        };
        // SAFETY: under the guard, and used longer only if it is still there once the gate is
        // locked: then nothing of it is replaced until it is unlocked.
        let table: Table<'a> = unsafe { Table::from_raw(head) };
        let lanes = table.lanes();
        let number = lane() + 1;
        let Some(lane) = lanes.lane(number) else {
            return Err(Missed::Lacks);
        };
        lane.gate.lock();
        let claimed = |key: &'a [u8]| {
            let hash = table.hash(key);
            let (_, segment) = table.segment(hash);
            let found = None;
            Claimed {
                key,
                hash,
                segment,
                found,
            }
        };
        let mut part = Self {
            lanes,
            lane,
            number,
            names: [Some(claimed(key)), other.map(claimed)],
            held: Held::default(),
            alone: lanes.is_only_one(),
            wasteful: false,
            own_thread: PhantomData,
        };
        if catalog.body.load() != form || !ptr::eq(table.lanes(), lanes) {
            return Err(Missed::Busy);
        }
        if !part.alone {
            part.lock_homes();
        }
        for which in 0..2 {
            part.settle(which)?;
        }
        Ok(part)
    }

    /// Locks the homes of all names, by address.
    fn lock_homes(&mut self) {
        let [one, other] = self
            .names
            .each_ref()
            .map(|name| name.as_ref().map(|name| name.segment.bucket(name.hash, 0)));
        let (Some(one), Some(other)) = (one, other) else {
            for bucket in one.into_iter().chain(other) {
                bucket.latch.lock();
                self.hold(bucket);
            }
            return;
        };
        let (low, high) = if ptr::from_ref(one) <= ptr::from_ref(other) {
            (one, other)
        } else {
            (other, one)
        };
        low.latch.lock();
        self.hold(low);
        if !ptr::eq(low, high) {
            high.latch.lock();
            self.hold(high);
        }
    }

    fn hold(&mut self, bucket: &'a Bucket) {
        let place = self.held.iter_mut().find(|place| place.is_none());
        *place.expect("there are as many as two names can take") = Some(bucket);
    }

    fn holds(&self, bucket: &Bucket) -> bool {
        if self.alone {
            return true;
        }
        self.held
            .iter()
            .flatten()
            .any(|held| ptr::eq(*held, bucket))
    }

    /// Holds one more bucket, if nobody else does.
    fn try_hold(&mut self, bucket: &'a Bucket) -> bool {
        if self.holds(bucket) {
            return true;
        }
        let locked = bucket.latch.try_lock();
        if locked {
            self.hold(bucket);
        }
        locked
    }

    /// Finds a name, or room for it, and holds the buckets that either takes.
    fn settle(&mut self, which: usize) -> Result<(), Missed> {
        let Some(name) = &self.names[which] else {
            return Ok(());
        };
        let (hash, segment) = (name.hash, name.segment);
        if let Some((step, slot, item)) = segment.locate(hash, name.key) {
            // Nobody else changes what this key leads to: its home is held.
            if step > 0 && !self.try_hold(segment.bucket(hash, step)) {
                return Err(Missed::Busy);
            }
            if let Some(name) = &mut self.names[which] {
                name.found = Some((slot, item));
            }
            return Ok(());
        }
        let row = self.lanes.row(self.number);
        if row.is_none_or(|row| self.lanes.tail(self.number) >= row.capacity()) {
            return Err(Missed::Lacks);
        }
        for step in 0..segment.reach() {
            let bucket = segment.bucket(hash, step);
            if !self.try_hold(bucket) {
                return Err(Missed::Busy);
            }
            if bucket.free_slot().is_some() {
                return Ok(());
            }
        }
        Err(Missed::Lacks)
    }

    fn name(&self, key: &[u8]) -> &Claimed<'a> {
        self.names
            .iter()
            .flatten()
            .find(|name| name.key == key)
            .expect("only what was claimed is changed")
    }

    fn set_found(&mut self, key: &[u8], found: Option<(&'a Slot, Item<'a>)>) {
        for name in self.names.iter_mut().flatten() {
            if name.key == key {
                name.found = found;
            }
        }
    }

    fn next_order(&self, floor: u64) -> u64 {
        // Relaxed: the gate is locked.
        let last = self.lane.last_order.load(Ordering::Relaxed);
        let least = floor.max(last + 1);
        least + (self.number as u64).wrapping_sub(least) % ORDER_STEP
    }

    /// Puts an item where the key's searches meet it. Its place is held.
    fn put(&mut self, key: &[u8], item: Item<'a>) {
        let name = self.name(key);
        let (hash, segment) = (name.hash, name.segment);
        let slots = (0..segment.reach()).find_map(|step| {
            let bucket = segment.bucket(hash, step);
            let held = self.holds(bucket);
            Some((step, bucket.free_slot().filter(|_| held)?))
        });
        let (steps, slot) = slots.expect("room was made with the claim");
        for step in 0..steps {
            // Before the item is put behind it: see the invariants of `segment`.
            segment.bucket(hash, step).mark();
        }
        segment::put_into(slot, hash, item);
        self.set_found(key, Some((slot, item)));
    }

    fn insert(&mut self, key: &[u8], order: u64, value: u64, tag: u8) -> Result<(), InsertError> {
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
        let tail = self.lanes.tail(self.number);
        let row = self.lanes.row(self.number);
        let Some(row) = row.filter(|row| tail < row.capacity()) else {
            // It was there when it was claimed: no room was made.
            return Err(InsertError::Full);
        };
        let item = fresh(key, order, value, tag);
        self.put(key, item);
        row.append(tail, item, self.number);
        self.lanes.set_tail(self.number, tail + 1);
        self.lane.count(1);
        // Release: see `Lanes::last_order`.
        self.lane.last_order.store(order, Ordering::Release);
        Ok(())
    }

    /// Takes a name out of table and row, not yet retired.
    fn take_out(&mut self, key: &[u8]) -> Option<Item<'a>> {
        let (slot, item) = self.name(key).found?;
        segment::clear(slot);
        if let Some(row) = self.lanes.row(item.place().0) {
            row.vacate(item);
        }
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

    fn remove(&mut self, key: &[u8]) -> Option<Removed> {
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

    fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let (Some((_, first)), Some((_, second))) = (self.name(one).found, self.name(other).found)
        else {
            return false;
        };
        let _change = self.change(one, other);
        let (value, tag) = first.payload();
        let (value, tag) = second.set_payload(value, tag);
        first.set_payload(value, tag);
        true
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        if to.is_empty() || to.len() > KEY_MAX || self.name(to).found.is_some() {
            return None;
        }
        let (slot, old) = self.name(from).found?;
        let order = old.order();
        let (value, tag) = old.payload();
        let new = fresh(to, order, value, tag);
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

    fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        let ((_, source), (_, target)) = (self.name(from).found?, self.name(to).found?);
        if from == to {
            return None;
        }
        let (moved, replaced) = (Removed::of(source), Removed::of(target));
        {
            let _change = self.change(from, to);
            target.set_payload(moved.value, moved.tag);
            self.take_out(from);
        }
        // SAFETY: taken out of row and table above; not used below.
        unsafe { source.retire() };
        Some((moved, replaced))
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.held
            .iter()
            .flatten()
            .for_each(|bucket| bucket.latch.unlock());
        self.lane.gate.unlock();
    }
}

/// Does the same by either right.
macro_rules! either {
    ($claim:expr, $right:ident => $change:expr) => {
        match &mut $claim.0 {
            Hold::Whole($right) => $change,
            Hold::Part($right) => $change,
        }
    };
}

impl Claim<'_> {
    /// The claimed name with this key.
    ///
    /// # Panics
    /// This, and all that follows, if the key was not claimed.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        match &self.0 {
            Hold::Whole(writer) => writer.get(key),
            Hold::Part(part) => part.name(key).found.map(|(_, item)| item),
        }
    }

    /// The order for a new name, if possible this or one little greater.
    #[must_use]
    pub fn next_order(&self, floor: impl FnOnce() -> u64) -> u64 {
        match &self.0 {
            Hold::Whole(writer) => writer.last_order() + 1,
            Hold::Part(part) => part.next_order(floor()),
        }
    }

    /// Adds a name that was not there when it was claimed; its order is
    /// [`next_order`](Self::next_order)'s, or greater by a multiple of 256.
    ///
    /// # Errors
    /// See [`InsertError`]; nothing has changed then.
    pub fn insert(
        &mut self,
        key: &[u8],
        order: u64,
        value: u64,
        tag: u8,
    ) -> Result<(), InsertError> {
        either!(self, right => right.insert(key, order, value, tag))
    }

    /// See [`CatalogWriter::remove`].
    pub fn remove(&mut self, key: &[u8]) -> Option<Removed> {
        either!(self, right => right.remove(key))
    }

    /// See [`CatalogWriter::replace`].
    ///
    /// # Panics
    /// If the value is 2^60 or more, or the tag 16 or more.
    pub fn replace(&mut self, key: &[u8], value: u64, tag: u8) -> Option<(u64, u8)> {
        assert!(value < VALUE_END && tag < TAG_END, "out of range");
        Some(self.get(key)?.set_payload(value, tag))
    }

    /// See [`CatalogWriter::exchange`].
    pub fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        either!(self, right => right.exchange(one, other))
    }

    /// See [`CatalogWriter::rename`].
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        either!(self, right => right.rename(from, to))
    }

    /// See [`CatalogWriter::rename_over`].
    pub fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        either!(self, right => right.rename_over(from, to))
    }

    /// Keeps the stamp, if it is the greatest, and adds to the tally, for [`Catalog::sums`]. False,
    /// and nothing is kept, of a whole catalog.
    pub fn note(&mut self, stamp: i64, tally: i64) -> bool {
        match &self.0 {
            Hold::Whole(_) => false,
            Hold::Part(part) => {
                part.lane.note(stamp, tally);
                true
            }
        }
    }

    /// Is it time to [`shrink`](CatalogWriter::shrink) the catalog, when this is dropped?
    #[must_use]
    pub fn is_wasteful(&self) -> bool {
        matches!(&self.0, Hold::Part(part) if part.wasteful)
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Hold::Whole(writer) => writer.fmt(f),
            Hold::Part(part) => {
                let keys = part.names.iter().flatten();
                f.debug_set()
                    .entries(keys.map(|name| String::from_utf8_lossy(name.key)))
                    .finish()
            }
        }
    }
}
