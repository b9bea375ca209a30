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
use super::body::{Form, View};
use super::item::{Item, TAG_END, VALUE_END};
use super::outcome::{InsertError, Removed};
use super::part::{Missed, Part, UNCLAIMED};
use super::table::Table;
use super::writer::CatalogWriter;
use crate::catalog_primitive::{lane, pause};
use crate::epoch;
use std::fmt;
use std::ptr;

/// The right to change one name or two; others wait for it until this is dropped.
///
/// It belongs to the thread that got it. Of a catalog that is small it is the right to change all
/// names, which makes no difference but to those who wait.
///
/// It is [taken](Claim::take) where it is kept: to move what was written a moment ago, word by word,
/// costs more than all the rest (a load that is wider than the stores before it waits until they
/// have reached the cache, and these for all before them).
pub struct Claim<'a>(Hold<'a>);

enum Hold<'a> {
    Nothing,
    /// Of nothing yet, but this key and its hash are known.
    Announced(&'a [u8], u64),
    Whole(CatalogWriter<'a>),
    Part(Part<'a>),
}

impl Catalog {
    /// [Takes](Claim::take) a claim.
    #[must_use]
    pub fn claim<'a>(&'a self, key: &'a [u8], other: Option<&'a [u8]>) -> Claim<'a> {
        let mut claim = Claim::nothing();
        claim.take(self, key, other);
        claim
    }

    /// Provides what a claim could not be taken for the want of.
    #[cold]
    fn provide(&self, keys: [Option<&[u8]>; 2]) {
        let mut writer = self.lock();
        for key in keys.into_iter().flatten() {
            writer.provide(lane() + 1, key);
        }
    }
}

impl<'a> Claim<'a> {
    /// One of nothing yet.
    #[inline]
    #[must_use]
    pub fn nothing() -> Self {
        Self(Hold::Nothing)
    }

    /// Has what a claim of this key looks at first fetched, for whoever has something to do before he
    /// [takes](Self::take) it.
    #[inline]
    pub fn announce(&mut self, catalog: &'a Catalog, key: &'a [u8]) {
        let guard = epoch::pin();
        if let View::Big(table) = catalog.view(&guard) {
            let hash = table.hash(key);
            table.segment(hash).1.bucket(hash, 0).fetch();
            self.0 = Hold::Announced(key, hash);
        }
    }

    /// The hash of this key, if it was announced.
    #[inline]
    fn announced(&self, key: &[u8]) -> Option<u64> {
        match self.0 {
            Hold::Announced(announced, hash) => ptr::eq(announced, key).then_some(hash),
            _ => None,
        }
    }

    /// Waits for the right to change the name with this key, and perhaps that with another.
    ///
    /// May wait under a guard of its own for others who hold claims: those must not wait for
    /// anything that needs time.
    pub fn take(&mut self, catalog: &'a Catalog, key: &'a [u8], other: Option<&'a [u8]>) {
        let mut looks = 0;
        loop {
            let missed = {
                // Until the gate is locked; what is found near a name may be somebody else's; and
                // what is let go of may have been replaced.
                let _guard = epoch::pin();
                match self.try_take(catalog, key, other) {
                    Ok(()) => return,
                    Err(missed) => {
                        self.0 = Hold::Nothing;
                        missed
                    }
                }
            };
            match missed {
                Missed::Small => {
                    let writer = catalog.lock();
                    // It may have grown meanwhile.
                    if !matches!(catalog.body.load(), Form::Big(_)) {
                        self.0 = Hold::Whole(writer);
                        return;
                    }
                }
                Missed::Lacks => catalog.provide([Some(key), other]),
                Missed::Busy => {
                    looks += 1;
                    pause(looks);
                }
            }
        }
    }

    /// Tries, under a guard; what it has got by then stays with it if that fails.
    #[inline]
    fn try_take(
        &mut self,
        catalog: &'a Catalog,
        key: &'a [u8],
        other: Option<&'a [u8]>,
    ) -> Result<(), Missed> {
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
        // While the gate is locked, the home bucket is on its way.
        let hash = match self.announced(key) {
            Some(hash) => hash,
            None => {
                let hash = table.hash(key);
                table.segment(hash).1.bucket(hash, 0).fetch();
                hash
            }
        };
        lane.gate.lock();
        // The segment is looked for once more: it may have been split before.
        self.0 = Hold::Part(Part::new(table, lane, number, key, hash));
        if catalog.body.load() != form || !ptr::eq(table.lanes(), lanes) {
            return Err(Missed::Busy);
        }
        match &mut self.0 {
            Hold::Part(part) => part.settle(table, other),
            _ => Err(Missed::Busy),
        }
    }
}

/// Does the same by either right.
macro_rules! either {
    ($claim:expr, $right:ident => $change:expr) => {
        match &mut $claim.0 {
            Hold::Nothing | Hold::Announced(..) => unreachable!("{UNCLAIMED}"),
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
            Hold::Nothing | Hold::Announced(..) => None,
            Hold::Whole(writer) => writer.get(key),
            Hold::Part(part) => part.name(key).item(),
        }
    }

    /// Is the claimed name with this key there?
    #[inline]
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        match &self.0 {
            Hold::Nothing | Hold::Announced(..) => false,
            Hold::Whole(writer) => writer.get(key).is_some(),
            Hold::Part(part) => part.name(key).is_there(),
        }
    }

    /// The order for a new name, if possible this or one little greater.
    #[must_use]
    pub fn next_order(&self, floor: impl FnOnce() -> u64) -> u64 {
        match &self.0 {
            Hold::Nothing | Hold::Announced(..) => unreachable!("{UNCLAIMED}"),
            Hold::Whole(writer) => writer.last_order() + 1,
            Hold::Part(part) => part.next_order(floor()),
        }
    }

    /// Adds a name that was not there when it was claimed; its order is
    /// [`next_order`](Self::next_order)'s, or greater by a multiple of 32.
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
            Hold::Nothing | Hold::Announced(..) | Hold::Whole(_) => false,
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
            Hold::Nothing | Hold::Announced(..) => f.debug_set().finish(),
            Hold::Whole(writer) => writer.fmt(f),
            Hold::Part(part) => {
                let keys = part.names().map(|name| name.key);
                f.debug_set()
                    .entries(keys.map(String::from_utf8_lossy))
                    .finish()
            }
        }
    }
}
