//! When a store that others change was asked for what is in memory: see [`shared`](crate::shared).
//!
//! *Invariant.* An answer is dated from before its question: what it tells was so at that time or later. What a change
//! through this core tells is dated from after it, so that no answer which may not know of it comes behind. What was asked for before a store told
//! of a change by others is in *doubt* from then on: it does not hold, however young it is.
//!
//! *Locking.* `listing` of a shard is held over a reading of all names of one directory, so that threads do not read the same, and comes before the
//! names of a directory. Directories that come along with another one are read without theirs: which answer stands is said by `order` and `changes`; `order` comes behind
//! names and pages, and before attributes; `table` is a leaf.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::readahead::Walks;
use crate::store;
use crate::types::{Ino, Time};

const SHARDS: usize = 64;
/// So long each name is asked for alone after the store had lost an inode that it had told of.
const ASKING_EACH: Duration = Duration::from_secs(1);

/// What is known of when the store was asked.
pub(crate) struct Coherence {
    /// `None`: answers hold for ever.
    valid: Option<Duration>,
    /// How long those hold of which changes are [told](store::Coherence::Told).
    heard: Duration,
    shards: Box<[Shard]>,
    pub(crate) walks: Walks,
    gone: Gone,
}

/// When the store answered last that an inode which it had told of has gone.
#[derive(Default)]
struct Gone {
    /// Is there such a time, and is it not too long ago? A hint, so that the lock is not taken without need.
    is_recent: AtomicBool,
    at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Shard {
    /// One thread reads the names of a directory.
    listing: Mutex<()>,
    order: Mutex<()>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    of: HashMap<Ino, Checked>,
    /// A change was told of an inode that is not there: it may be one that is asked for now.
    doubt: Option<Instant>,
}

impl Table {
    fn entry(&mut self, ino: Ino) -> &mut Checked {
        let doubt = self.doubt;
        self.of.entry(ino).or_insert_with(|| Checked {
            doubt,
            ..Checked::default()
        })
    }
}

/// When the store was asked for an inode.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checked {
    /// `None`: not for its record.
    pub(crate) at: Option<Instant>,
    /// When a change by others was told last.
    doubt: Option<Instant>,
    /// Are changes told since `at`?
    heard: bool,
    /// Would its record have shown any change since?
    pub(crate) settled: bool,
    /// It is written past this core.
    bypassed: bool,
    /// It was, and no answer is there yet to a question from after that: that is in `doubt`.
    expired: bool,
    /// Of a directory. `None`: its names have to be read.
    pub(crate) names: Option<NamesRead>,
    /// Names of a directory that were asked for one by one since they were read.
    asked: u32,
    /// Changes of a directory's names that were made through this core.
    pub(crate) changes: u32,
}

/// All names of a directory were read.
#[derive(Clone, Copy)]
pub(crate) struct NamesRead {
    pub(crate) at: Instant,
    /// The times that it had then: names that others change move them, if it had [settled](store::Shared::is_settled).
    pub(crate) times: (Time, Time),
    pub(crate) settled: bool,
    /// Are changes told since `at`?
    pub(crate) heard: bool,
}

/// What the store says of an answer beside the answer.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) settled: bool,
    pub(crate) heard: bool,
}

impl Checked {
    /// Was a change told since the store was asked? Then observers were told as well.
    pub(crate) fn is_in_doubt(self) -> bool {
        self.doubt.is_some() && self.doubt >= self.at
    }

    /// Can it have changed by what was done through the mount, without this core?
    pub(crate) fn is_bypassed(self) -> bool {
        self.bypassed || self.expired
    }
}

impl Coherence {
    /// `None`: the store has nothing of this.
    pub(crate) fn of(store: &dyn store::Store) -> Option<Box<Self>> {
        let (valid, heard) = match store.shared()?.coherence() {
            store::Coherence::Exclusive => (None, Duration::ZERO),
            store::Coherence::For(time) => (Some(time), time),
            store::Coherence::Told { valid, heard } => (Some(valid), heard),
        };
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Some(Box::new(Self {
            valid,
            heard,
            shards,
            walks: Walks::new(valid),
            gone: Gone::default(),
        }))
    }

    /// Do answers hold for a time only?
    #[inline]
    pub(crate) fn is_dated(&self) -> bool {
        self.valid.is_some()
    }

    /// Does no answer hold?
    pub(crate) fn holds_never(&self) -> bool {
        self.valid == Some(Duration::ZERO) && self.heard == Duration::ZERO
    }

    fn shard(&self, ino: Ino) -> &Shard {
        &self.shards[ino.0 as usize % SHARDS]
    }

    pub(crate) fn checked(&self, ino: Ino) -> Checked {
        let table = self.shard(ino).table.lock();
        table.of.get(&ino).copied().unwrap_or_default()
    }

    /// Does what the store told of an inode hold?
    pub(crate) fn holds(&self, checked: &Checked, now: Instant) -> bool {
        let Some(valid) = self.valid else { return true };
        let stands = |at| self.stands(checked, (at, checked.heard), valid, now);
        !checked.bypassed && checked.at.is_some_and(stands)
    }

    /// Does the store tell of changes, so that a front end keeps what it is told for longer?
    pub(crate) fn is_told(&self) -> bool {
        self.valid.is_some_and(|valid| self.heard > valid)
    }

    /// Was the store asked for an inode as lately as it is for one of which no changes are told?
    pub(crate) fn is_recent(&self, checked: &Checked, now: Instant) -> bool {
        let Some(valid) = self.valid else { return true };
        let stands = |at| self.stands(checked, (at, false), valid, now);
        !checked.bypassed && checked.at.is_some_and(stands)
    }

    /// Do the names of a directory hold by themselves, whatever its times say?
    pub(crate) fn names_hold(&self, checked: &Checked, names: &NamesRead, now: Instant) -> bool {
        let Some(valid) = self.valid else { return true };
        self.stands(checked, (names.at, names.heard), valid, now)
    }

    fn stands(
        &self,
        checked: &Checked,
        (at, heard): (Instant, bool),
        valid: Duration,
        now: Instant,
    ) -> bool {
        let valid = if heard { self.heard } else { valid };
        checked.doubt.is_none_or(|doubt| doubt < at) && now.saturating_duration_since(at) < valid
    }

    /// Will a change of this inode by others be told, so that what was read of it since then holds longer?
    ///
    /// Not if a change was told since then: what was read may be from before that change, although the
    /// store was asked again meanwhile.
    pub(crate) fn is_heard(&self, ino: Ino, since: Instant, now: Instant) -> bool {
        let checked = self.checked(ino);
        let is_later = checked.doubt.is_none_or(|doubt| doubt < since);
        checked.heard && is_later && self.holds(&checked, now)
    }

    pub(crate) fn note(&self, ino: Ino, at: Instant, standing: Standing) {
        let mut table = self.shard(ino).table.lock();
        let checked = table.entry(ino);
        checked.at = Some(at);
        checked.expired &= checked.doubt.is_some_and(|doubt| doubt >= at);
        checked.settled = standing.settled && !checked.is_bypassed();
        checked.heard = standing.heard;
    }

    /// An inode is written past this core from now on: no answer holds.
    pub(crate) fn begin_bypass(&self, ino: Ino) {
        self.shard(ino).table.lock().entry(ino).bypassed = true;
    }

    /// It is no longer: no answer from before now holds, though it may be the latest.
    pub(crate) fn end_bypass(&self, ino: Ino, now: Instant) {
        let mut table = self.shard(ino).table.lock();
        let checked = table.entry(ino);
        checked.doubt = Some(now);
        (checked.bypassed, checked.expired, checked.settled) = (false, true, false);
    }

    /// As [`doubt`](Self::doubt), of an inode that was asked for before.
    pub(crate) fn doubt_if_known(&self, ino: Ino, now: Instant) {
        if let Some(checked) = self.shard(ino).table.lock().of.get_mut(&ino) {
            checked.doubt = Some(now);
        }
    }

    /// The store has lost an inode that it had told of.
    pub(crate) fn note_gone(&self, now: Instant) {
        *self.gone.at.lock() = Some(now);
        // Relaxed: the caller that was told so looks again after this; others need not see it.
        self.gone.is_recent.store(true, Ordering::Relaxed);
    }

    /// Is the store to be asked for each name, because inodes go away below faster than what is known of them?
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

    /// A change by others was told: what was asked for until now does not hold any more.
    pub(crate) fn doubt(&self, ino: Ino, now: Instant) {
        let mut table = self.shard(ino).table.lock();
        match table.of.get_mut(&ino) {
            Some(checked) => checked.doubt = Some(now),
            None => table.doubt = Some(now),
        }
    }

    /// The same of all inodes. Tells which are known.
    pub(crate) fn doubt_all(&self, now: Instant) -> Vec<Ino> {
        let mut known = Vec::new();
        for shard in &self.shards {
            let mut table = shard.table.lock();
            table.doubt = Some(now);
            for (ino, checked) in &mut table.of {
                checked.doubt = Some(now);
                known.push(*ino);
            }
        }
        known
    }

    /// Puts an answer behind all that were asked for before. `None`: a later one is there already.
    pub(crate) fn in_order(&self, ino: Ino, at: Instant) -> Option<MutexGuard<'_, ()>> {
        let order = self.shard(ino).order.lock();
        let later = self.checked(ino).at.is_some_and(|known| known > at);
        (!later).then_some(order)
    }

    /// An inode has left memory.
    pub(crate) fn forget(&self, ino: Ino) {
        let mut table = self.shard(ino).table.lock();
        // It may be asked for at this moment.
        let doubt = table.of.remove(&ino).and_then(|checked| checked.doubt);
        table.doubt = table.doubt.max(doubt);
    }

    /// One thread at a time reads the names of a directory while it has this.
    pub(crate) fn listing(&self, dir: Ino) -> MutexGuard<'_, ()> {
        self.shard(dir).listing.lock()
    }

    /// One more name of a directory is about to be asked for alone; so many have been since it was listed.
    pub(crate) fn count_name(&self, dir: Ino) -> u32 {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        checked.asked = checked.asked.saturating_add(1);
        checked.asked
    }

    /// All names of a directory, which are locked, were read. `None`: it was changed through this core meanwhile, so they are read again.
    pub(crate) fn note_names(&self, dir: Ino, names: Option<NamesRead>) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        (checked.asked, checked.names) = (0, names);
    }

    /// How often names of a directory were changed through this core. A reading of them, and another change, that see one end meanwhile do not
    /// know whether it is in what they were told.
    pub(crate) fn changes(&self, dir: Ino) -> u32 {
        self.checked(dir).changes
    }

    /// Names of a directory, which are locked, were changed through this core: what is known of them is this, or nothing.
    pub(crate) fn note_change(&self, dir: Ino, names: Option<NamesRead>) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir);
        checked.changes = checked.changes.wrapping_add(1);
        checked.names = names;
    }
}
