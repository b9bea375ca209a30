//! When a store that others change was asked for what is in memory: see [`shared`](crate::shared).
//!
//! *Invariant.* An answer is dated from before its question: what it tells was so at that time or later. What a change
//! through this core tells is dated from after it, so that no answer which may not know of it comes behind.
//!
//! *Locking.* `listing` of a shard is held over a reading of all names of one directory, so that threads do not read the same, and comes before the
//! names of a directory. Directories that come along with another one are read without theirs: which answer stands is said by `order` and `changes`; `order` comes behind
//! names and pages, and before attributes; `table` is a leaf.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::readahead::Walks;
use crate::store;
use crate::types::{Ino, Time};

const SHARDS: usize = 64;

/// What is known of when the store was asked.
pub(crate) struct Coherence {
    /// `None`: answers hold for ever.
    valid: Option<Duration>,
    shards: Box<[Shard]>,
    pub(crate) walks: Walks,
}

#[derive(Default)]
struct Shard {
    /// One thread reads the names of a directory.
    listing: Mutex<()>,
    order: Mutex<()>,
    table: Mutex<HashMap<Ino, Checked>>,
}

/// When the store was asked for an inode.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checked {
    /// `None`: not for its record.
    pub(crate) at: Option<Instant>,
    /// Would its record have shown any change since?
    pub(crate) settled: bool,
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
}

impl Coherence {
    /// `None`: the store has nothing of this.
    pub(crate) fn of(store: &dyn store::Store) -> Option<Box<Self>> {
        let valid = match store.shared()?.coherence() {
            store::Coherence::Exclusive => None,
            store::Coherence::For(time) => Some(time),
        };
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Some(Box::new(Self {
            valid,
            shards,
            walks: Walks::new(valid),
        }))
    }

    /// Do answers hold for a time only?
    #[inline]
    pub(crate) fn is_dated(&self) -> bool {
        self.valid.is_some()
    }

    /// Does no answer hold?
    pub(crate) fn holds_never(&self) -> bool {
        self.valid == Some(Duration::ZERO)
    }

    fn shard(&self, ino: Ino) -> &Shard {
        &self.shards[ino.0 as usize % SHARDS]
    }

    pub(crate) fn checked(&self, ino: Ino) -> Checked {
        let table = self.shard(ino).table.lock();
        table.get(&ino).copied().unwrap_or_default()
    }

    /// Does what the store told at that time hold?
    pub(crate) fn holds(&self, at: Option<Instant>, now: Instant) -> bool {
        let for_a_time = |valid| at.is_some_and(|at| now.saturating_duration_since(at) < valid);
        self.valid.is_none_or(for_a_time)
    }

    pub(crate) fn note(&self, ino: Ino, at: Instant, settled: bool) {
        let mut table = self.shard(ino).table.lock();
        let checked = table.entry(ino).or_default();
        (checked.at, checked.settled) = (Some(at), settled);
    }

    /// Puts an answer behind all that were asked for before. `None`: a later one is there already.
    pub(crate) fn in_order(&self, ino: Ino, at: Instant) -> Option<MutexGuard<'_, ()>> {
        let order = self.shard(ino).order.lock();
        let later = self.checked(ino).at.is_some_and(|known| known > at);
        (!later).then_some(order)
    }

    /// An inode has left memory.
    pub(crate) fn forget(&self, ino: Ino) {
        self.shard(ino).table.lock().remove(&ino);
    }

    /// One thread at a time reads the names of a directory while it has this.
    pub(crate) fn listing(&self, dir: Ino) -> MutexGuard<'_, ()> {
        self.shard(dir).listing.lock()
    }

    /// One more name of a directory is about to be asked for alone; so many have been since it was listed.
    pub(crate) fn count_name(&self, dir: Ino) -> u32 {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir).or_default();
        checked.asked = checked.asked.saturating_add(1);
        checked.asked
    }

    /// All names of a directory, which are locked, were read. `None`: it was changed through this core meanwhile, so they are read again.
    pub(crate) fn note_names(&self, dir: Ino, names: Option<NamesRead>) {
        let mut table = self.shard(dir).table.lock();
        let checked = table.entry(dir).or_default();
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
        let checked = table.entry(dir).or_default();
        checked.changes = checked.changes.wrapping_add(1);
        checked.names = names;
    }
}
