//! The known names of a directory that is not in memory as a whole.
//!
//! Recently used names, and names that were found to be absent, are kept in two generations of a
//! hash map. When the younger one is full, the older one is dropped, except for names used since.
//!
//! *Invariants.* Each known entry is what the store returns once the names are unlocked. Entries
//! change only with the names locked, so no known absence outlives the creation of the name.
//!
//! *Locking.* The mutex is a leaf lock.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};

use super::Entry;
use super::filter::Filter;
use crate::store::NameRun;

/// Names kept at least: more than one operation pins.
const ROOM_MIN: usize = 64;
/// This many bytes of a filter count as a name.
const NAME_BYTES: usize = 64;

/// The result of a lookup in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The name has this entry.
    Found(Entry),
    /// The name does not exist.
    Negative,
    /// Only the store can tell.
    Unknown,
}

impl From<Option<Entry>> for Known {
    fn from(entry: Option<Entry>) -> Self {
        entry.map_or(Self::Negative, Self::Found)
    }
}

/// A known name; `entry` is `None` if it is absent.
struct Slot {
    entry: Option<Entry>,
    used: bool,
}

type Generation = HashMap<Box<[u8]>, Slot, RandomState>;

/// The known names of one directory.
#[derive(Default)]
pub(crate) struct Partial(Mutex<KnownNames>);

impl Partial {
    pub(super) fn lock(&self) -> MutexGuard<'_, KnownNames> {
        self.0.lock()
    }
}

/// The contents of a [`Partial`].
#[derive(Default)]
pub(super) struct KnownNames {
    young: Generation,
    old: Generation,
    /// Names that may be kept.
    room: usize,
    /// Number of names of the directory, in memory or not.
    pub(super) names: u32,
    /// Greater than every cookie ever given.
    pub(super) next_cookie: u64,
    /// Number of changes: times that the names were locked for one.
    pub(super) changes: u64,
    /// Number of names that the store was asked for since the directory became partial.
    pub(super) asked: u64,
    /// Value of `held()` when it was last reported to the memory budget.
    pub(super) counted: i64,
    /// Created when a lookup of an absent name first reaches the store.
    filter: Option<Filter>,
}

impl KnownNames {
    /// Starts over, for a directory of this many names; `filter` holds all of them.
    pub(super) fn begin(&mut self, names: u32, next_cookie: u64, filter: Option<Filter>) {
        let (counted, room) = (self.counted, self.room);
        // Changes made while all names were in memory were not counted, so a lookup in the store
        // that began before must fail its check.
        let changes = self.changes + 1;
        *self = Self {
            names,
            next_cookie,
            changes,
            counted,
            room,
            filter,
            ..Self::default()
        };
    }

    /// Looks up a name for a reader.
    pub(super) fn look(&mut self, name: &[u8]) -> Known {
        let slot = match self.young.get_mut(name) {
            Some(slot) => Some(slot),
            None => self.old.get_mut(name),
        };
        match slot {
            Some(slot) => {
                slot.used = true;
                slot.entry.into()
            }
            None if self.filter.as_ref().is_some_and(|it| it.excludes(name)) => Known::Negative,
            None => Known::Unknown,
        }
    }

    /// As [`look`](Self::look), for a name that is changed next: moves the entry to the young
    /// generation, so that it stays for the operation.
    pub(super) fn hold(&mut self, name: &[u8]) -> Known {
        let known = self.look(name);
        if let Some((name, slot)) = self.old.remove_entry(name) {
            self.insert(name, slot.entry);
        }
        known
    }

    /// The entry of a name, if it is known and present.
    pub(super) fn entry(&self, name: &[u8]) -> Option<Entry> {
        let slot = self.young.get(name).or_else(|| self.old.get(name));
        slot?.entry
    }

    /// Sets the entry of a name; `None`: absent. The caller holds the lock of the names.
    pub(super) fn put(&mut self, name: &[u8], entry: Option<Entry>) {
        if let Some(slot) = self.young.get_mut(name) {
            slot.entry = entry;
            return;
        }
        self.old.remove(name);
        self.insert(name.into(), entry);
    }

    fn insert(&mut self, name: Box<[u8]>, entry: Option<Entry>) {
        let used = false;
        self.young.insert(name, Slot { entry, used });
        let room = self.room.max(ROOM_MIN);
        if self.young.len() < room / 2 {
            return;
        }
        let next = std::mem::take(&mut self.young);
        let gone = std::mem::replace(&mut self.old, next);
        // At most a quarter of the room, so that the young generation is not full again at once.
        let stay = gone.into_iter().filter(|(_, slot)| slot.used);
        self.young.extend(stay.take(room / 4).map(|(name, slot)| {
            let entry = slot.entry;
            (name, Slot { entry, used })
        }));
    }

    /// Adds a new name to the filter.
    pub(super) fn appears(&mut self, name: &[u8]) {
        if let Some(filter) = &mut self.filter {
            filter.add(name);
        }
    }

    /// Counts a removed name in the filter.
    pub(super) fn disappears(&mut self) {
        let names = u64::from(self.names);
        // The next lookups of absent names fill a new one.
        self.filter.take_if(|filter| !filter.remove(names));
    }

    /// For a lookup that found a name absent in the store: the cookie behind which the filter lacks
    /// names.
    pub(super) fn filter_misses(&mut self) -> Option<u64> {
        let names = u64::from(self.names);
        let filter = self.filter.get_or_insert_with(|| Filter::new(names));
        filter.missing_behind()
    }

    /// Adds the names behind [that cookie](Self::filter_misses) to the filter; an empty run
    /// completes it.
    pub(super) fn fill_filter(&mut self, run: &NameRun) {
        if let Some(filter) = &mut self.filter {
            run.iter().for_each(|entry| filter.add(entry.name));
            filter.reaches(run.last_cookie());
        }
    }

    /// Sets how many names may be kept.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Names in memory, plus the filter's memory in names.
    pub(super) fn held(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::bytes);
        self.young.len() + self.old.len() + filter / NAME_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{FileType, Ino};

    fn entry(number: u64) -> Option<Entry> {
        Some(Entry {
            cookie: number + 3,
            ino: Ino(number + 100),
            kind: FileType::Regular,
        })
    }

    fn name(number: u64) -> Vec<u8> {
        format!("name-{number}").into_bytes()
    }

    #[test]
    fn what_was_asked_before_the_directory_was_in_memory_as_a_whole_is_not_believed() {
        let mut known = KnownNames::default();
        known.begin(5, 8, None);
        let asked = known.changes;
        known.begin(6, 9, None);
        assert_ne!(known.changes, asked);
    }

    #[test]
    fn what_is_used_stays_while_others_come_and_go_and_no_more_is_kept_than_there_is_room_for() {
        let mut known = KnownNames::default();
        known.set_room(1000);
        known.begin(5, 8, None);
        for number in 0..20_000 {
            known.put(&name(number), entry(number).filter(|_| number % 3 > 0));
            assert_eq!(known.look(&name(0)), Known::Negative, "after {number}");
            if number > 0 {
                assert_eq!(known.look(&name(1)), entry(1).into(), "after {number}");
            }
            assert!(known.held() <= 1000, "{} are held", known.held());
        }
        assert_eq!(known.look(&name(4)), Known::Unknown);
        assert_eq!(known.look(&name(19_999)), entry(19_999).into());
    }

    #[test]
    fn what_is_held_stays_for_as_many_more_as_an_operation_is_about() {
        let mut known = KnownNames::default();
        for number in 0..10_000 {
            known.put(&name(number), entry(number));
            let held = number.saturating_sub(30);
            if known.hold(&name(held)) != Known::Unknown {
                for more in 0..4 {
                    known.put(&name(1_000_000 + 4 * number + more), None);
                }
                assert_eq!(known.entry(&name(held)), entry(held));
            }
        }
    }

    #[test]
    fn a_filter_is_filled_by_those_who_ask_in_vain_and_knows_what_comes_meanwhile() {
        let mut known = KnownNames::default();
        known.begin(300, 303, None);
        let mut run = NameRun::default();
        let mut asked = 0;
        while let Some(after) = known.filter_misses() {
            assert_eq!(known.look(b"none"), Known::Unknown);
            known.appears(&name(1000 + after));
            run.clear();
            for number in after..(after + 100).min(300) {
                run.push(&name(number), number + 1, Ino(9), FileType::Regular);
            }
            known.fill_filter(&run);
            asked += 1;
        }
        assert_eq!((asked, known.look(b"none")), (4, Known::Negative));
        for number in (0..300).chain([1000, 1100, 1200, 1300]) {
            assert_eq!(known.look(&name(number)), Known::Unknown, "{number}");
        }
        known.appears(b"none");
        assert_eq!(known.look(b"none"), Known::Unknown);
        (0..5000).for_each(|_| known.disappears());
        assert_eq!(known.filter_misses(), Some(0));
    }

    #[test]
    fn the_last_word_holds() {
        let mut known = KnownNames::default();
        known.put(b"a", entry(1));
        known.put(b"a", None);
        assert_eq!(known.look(b"a"), Known::Negative);
        known.put(b"a", entry(2));
        assert_eq!(known.look(b"a"), entry(2).into());
        known.begin(0, 3, None);
        assert_eq!(known.look(b"a"), Known::Unknown);
    }
}
