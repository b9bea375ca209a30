//! The times of requests to a store that others change: see [`shared`](crate::shared).
//!
//! *Invariant.* An answer has the time before its request: it was true at that time or later. A
//! change through this core has the time after it, so that an older answer, which may not contain
//! the change, does not replace it. A notification puts all earlier answers in *doubt*: they are
//! not valid, whatever their age.
//!
//! *Locking.* `listing` of a shard is held while all names of one directory are read, so that
//! threads do not read the same directory twice. It precedes the names of a directory. Directories
//! that are read with another one are read without their `listing`: `order` and `changes` decide
//! which answer counts. `order` comes after names and pages, and before attributes; `table` is a
//! leaf.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::losses::Losses;
use crate::readahead::Walks;
use crate::store;
use crate::types::{Ino, Time};

const SHARDS: usize = 64;
/// How long each lookup asks the store after an inode had disappeared.
const ASKING_EACH: Duration = Duration::from_secs(1);

/// The times of requests to the store.
pub(crate) struct Coherence {
    /// `None`: answers never expire.
    valid: Option<Duration>,
    /// The validity of answers about inodes with [notifications](store::Coherence::Notified).
    notified: Duration,
    shards: Box<[Shard]>,
    pub(crate) walks: Walks,
    pub(crate) losses: Losses,
    gone: Gone,
}

/// The last time that the store reported a known inode as gone.
#[derive(Default)]
struct Gone {
    /// Is there such a time, and is it recent? A hint that avoids the lock.
    is_recent: AtomicBool,
    at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Shard {
    /// Serializes the readers of a directory's names.
    listing: Mutex<()>,
    order: Mutex<()>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    of: HashMap<Ino, Checked>,
    /// A notification came for an inode that is not known: a request for it may be in flight.
    invalidated: Option<Instant>,
}

impl Table {
    fn entry(&mut self, ino: Ino) -> &mut Checked {
        let invalidated = self.invalidated;
        self.of.entry(ino).or_insert_with(|| Checked {
            invalidated,
            ..Checked::default()
        })
    }
}

/// The requests for an inode.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checked {
    /// When its record was requested. `None`: never.
    pub(crate) at: Option<Instant>,
    /// When the last notification of a change by others came.
    invalidated: Option<Instant>,
    /// Are changes since `at` reported?
    notified: bool,
    /// Would its record show any change since `at`?
    pub(crate) settled: bool,
    /// It is being written past this core.
    bypassed: bool,
    /// It was written past this core until `invalidated`, and no request since then has been
    /// answered.
    expired: bool,
    /// For a directory. `None`: its names have to be read.
    pub(crate) names: Option<NamesRead>,
    /// Single lookups in a directory since its names were read.
    asked: u32,
    /// Answers about single names of a directory.
    pub(crate) answers: u32,
    /// Changes of a directory's names through this core.
    pub(crate) changes: u32,
}

/// A reading of all names of a directory.
#[derive(Clone, Copy)]
pub(crate) struct NamesRead {
    pub(crate) at: Instant,
    /// The directory's times then: a change by others moves them if they had
    /// [settled](store::Shared::is_settled).
    pub(crate) times: (Time, Time),
    pub(crate) settled: bool,
    /// Are changes since `at` reported?
    pub(crate) notified: bool,
}

/// The present, as the store's clock and its notifications have it.
#[derive(Clone, Copy)]
pub(crate) struct Present {
    pub(crate) now: Instant,
    /// See [`store::Shared::notified_until`].
    pub(crate) notified_until: Option<Instant>,
}

/// What the store says about the validity of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) settled: bool,
    pub(crate) notified: bool,
}

impl Checked {
    /// Did a notification come since the request? Then observers were notified too.
    pub(crate) fn is_invalidated(self) -> bool {
        self.invalidated.is_some() && self.invalidated >= self.at
    }

    /// May a front end have changed it past this core?
    pub(crate) fn is_bypassed(self) -> bool {
        self.bypassed || self.expired
    }
}

impl Coherence {
    /// `None`: the store is not shared.
    pub(crate) fn of(store: &dyn store::Store) -> Option<Box<Self>> {
        let (valid, notified) = match store.shared()?.coherence() {
            store::Coherence::Exclusive => (None, Duration::ZERO),
            store::Coherence::For(time) => (Some(time), time),
            store::Coherence::Notified { valid, notified } => (Some(valid), notified),
        };
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Some(Box::new(Self {
            valid,
            notified,
            shards,
            walks: Walks::new(valid),
            losses: Losses::default(),
            gone: Gone::default(),
        }))
    }

    /// Do answers expire?
    #[inline]
    pub(crate) fn is_dated(&self) -> bool {
        self.valid.is_some()
    }

    /// Do answers expire at once?
    pub(crate) fn holds_never(&self) -> bool {
        self.valid == Some(Duration::ZERO) && self.notified == Duration::ZERO
    }

    fn shard(&self, ino: Ino) -> &Shard {
        &self.shards[ino.0 as usize % SHARDS]
    }

    pub(crate) fn checked(&self, ino: Ino) -> Checked {
        let table = self.shard(ino).table.lock();
        table.of.get(&ino).copied().unwrap_or_default()
    }

    /// Is the answer about an inode valid?
    pub(crate) fn holds(&self, checked: &Checked, now: Present) -> bool {
        let Some(valid) = self.valid else { return true };
        let stands = |at| self.stands(checked, (at, checked.notified), valid, now);
        !checked.bypassed && checked.at.is_some_and(stands)
    }

    /// Does the store send notifications, so that a front end caches answers for longer?
    pub(crate) fn is_notifying(&self) -> bool {
        self.valid.is_some_and(|valid| self.notified > valid)
    }

    /// Is the answer so recent that it would be valid without notifications?
    pub(crate) fn is_recent(&self, checked: &Checked, now: Present) -> bool {
        let Some(valid) = self.valid else { return true };
        let stands = |at| self.stands(checked, (at, false), valid, now);
        !checked.bypassed && checked.at.is_some_and(stands)
    }

    /// Are the names of a directory valid regardless of its times?
    pub(crate) fn names_hold(&self, checked: &Checked, names: &NamesRead, now: Present) -> bool {
        let Some(valid) = self.valid else { return true };
        self.stands(checked, (names.at, names.notified), valid, now)
    }

    fn stands(
        &self,
        checked: &Checked,
        (at, notified): (Instant, bool),
        valid: Duration,
        Present {
            now,
            notified_until,
        }: Present,
    ) -> bool {
        let is_notified = notified && notified_until.is_none_or(|until| now < until);
        let valid = if is_notified { self.notified } else { valid };
        checked
            .invalidated
            .is_none_or(|invalidated| invalidated < at)
            && now.saturating_duration_since(at) < valid
    }

    /// Will a change of this inode by others be reported, so that what was read since `since` stays
    /// valid longer? Returns for how long that is certain.
    ///
    /// Not if a notification came since then: what was read may be from before that change,
    /// although the store was asked again meanwhile.
    pub(crate) fn notified_for(
        &self,
        ino: Ino,
        since: Instant,
        present: Present,
    ) -> Option<Duration> {
        let checked = self.checked(ino);
        let is_later = checked
            .invalidated
            .is_none_or(|invalidated| invalidated < since);
        let left = match present.notified_until {
            None => Duration::MAX,
            Some(until) => until.saturating_duration_since(present.now),
        };
        let is_notified = checked.notified && is_later && self.holds(&checked, present);
        (is_notified && !left.is_zero()).then_some(left)
    }

    pub(crate) fn note(&self, ino: Ino, at: Instant, standing: Standing) {
        let mut table = self.shard(ino).table.lock();
        let checked = table.entry(ino);
        checked.at = Some(at);
        checked.expired &= checked
            .invalidated
            .is_some_and(|invalidated| invalidated >= at);
        checked.settled = standing.settled && !checked.is_bypassed();
        checked.notified = standing.notified;
    }

    /// An inode is written past this core from now on: no answer is valid.
    pub(crate) fn begin_bypass(&self, ino: Ino) {
        self.shard(ino).table.lock().entry(ino).bypassed = true;
    }

    /// That has ended: no answer to a request before `now` is valid, not even the latest.
    pub(crate) fn end_bypass(&self, ino: Ino, now: Instant) {
        let mut table = self.shard(ino).table.lock();
        let checked = table.entry(ino);
        checked.invalidated = Some(now);
        (checked.bypassed, checked.expired, checked.settled) = (false, true, false);
    }

    /// The store reported a known inode as gone.
    pub(crate) fn note_gone(&self, now: Instant) {
        *self.gone.at.lock() = Some(now);
        // Relaxed: only the thread that called this must see it in its next lookup.
        self.gone.is_recent.store(true, Ordering::Relaxed);
    }

    /// Must each lookup ask the store, because inodes disappear faster than cached names expire?
    pub(crate) fn asks_each(&self, now: Instant) -> bool {
        if !self.gone.is_recent.load(Ordering::Relaxed) {
            return false;
        }
        let mut at = self.gone.at.lock();
        let asks = at.is_some_and(|at| now.saturating_duration_since(at) < ASKING_EACH);
        if !asks {
            *at = None;
            self.gone.is_recent.store(false, Ordering::Relaxed);
        }
        asks
    }

    /// Like [`invalidate`](Self::invalidate), for an inode that was requested before.
    pub(crate) fn invalidate_if_known(&self, ino: Ino, now: Instant) {
        if let Some(checked) = self.shard(ino).table.lock().of.get_mut(&ino) {
            checked.invalidated = Some(now);
        }
    }

    /// A change by others was reported: all earlier answers are invalid.
    pub(crate) fn invalidate(&self, ino: Ino, now: Instant) {
        let mut table = self.shard(ino).table.lock();
        match table.of.get_mut(&ino) {
            Some(checked) => checked.invalidated = Some(now),
            None => table.invalidated = Some(now),
        }
    }

    /// A name came in an answer that was asked for at `at`, without the record of its inode. An
    /// answer about the inode that may be older than the name is invalid.
    pub(crate) fn invalidate_older(&self, ino: Ino, at: Instant, now: Instant) {
        let before = at.checked_sub(Duration::from_nanos(1));
        let mut table = self.shard(ino).table.lock();
        match table.of.get_mut(&ino) {
            // Both were asked for at once, and answered in any order.
            Some(checked) if checked.at > Some(at) => checked.invalidated = Some(now),
            Some(checked) => checked.invalidated = checked.invalidated.max(before),
            // A request for it may be in flight.
            None => table.invalidated = table.invalidated.max(before),
        }
    }

    /// Like [`invalidate`](Self::invalidate), for all inodes. Returns the known ones.
    pub(crate) fn invalidate_all(&self, now: Instant) -> Vec<Ino> {
        let mut known = Vec::new();
        for shard in &self.shards {
            let mut table = shard.table.lock();
            table.invalidated = Some(now);
            for (ino, checked) in &mut table.of {
                checked.invalidated = Some(now);
                known.push(*ino);
            }
        }
        known
    }

    /// Orders an answer after all earlier ones. `None`: a later one has been applied already.
    pub(crate) fn in_order(&self, ino: Ino, at: Instant) -> Option<MutexGuard<'_, ()>> {
        let order = self.shard(ino).order.lock();
        let later = self.checked(ino).at.is_some_and(|known| known > at);
        (!later).then_some(order)
    }

    /// An inode was evicted.
    pub(crate) fn forget(&self, ino: Ino) {
        self.losses.forget(ino);
        let mut table = self.shard(ino).table.lock();
        // A request for it may be in flight.
        let invalidated = table
            .of
            .remove(&ino)
            .and_then(|checked| checked.invalidated);
        table.invalidated = table.invalidated.max(invalidated);
    }

    /// Held by the thread that reads the names of a directory.
    pub(crate) fn listing(&self, dir: Ino) -> MutexGuard<'_, ()> {
        self.shard(dir).listing.lock()
    }

    /// Counts a single lookup in a directory; returns the number since its names were read.
    pub(crate) fn count_name(&self, dir: Ino) -> u32 {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        checked.asked = checked.asked.saturating_add(1);
        checked.asked
    }

    /// The store answered a lookup of a single name of a directory.
    pub(crate) fn note_answer(&self, dir: Ino) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        checked.answers = checked.answers.wrapping_add(1);
    }

    /// All names of a directory, which are locked, were read. `None`: it was changed through this
    /// core meanwhile, so they have to be read again.
    pub(crate) fn note_names(&self, dir: Ino, names: Option<NamesRead>) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        (checked.asked, checked.names) = (0, names);
    }

    /// The number of changes of a directory's names through this core. If a change ends during a
    /// reading or another change, it is unknown whether their answers contain it.
    pub(crate) fn changes(&self, dir: Ino) -> u32 {
        self.checked(dir).changes
    }

    /// Names of a directory, which are locked, were changed through this core. `names`: the reading
    /// that is valid now.
    pub(crate) fn note_change(&self, dir: Ino, names: Option<NamesRead>) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        checked.changes = checked.changes.wrapping_add(1);
        checked.names = names;
    }
}
