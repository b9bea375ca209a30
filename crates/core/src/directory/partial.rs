//! What is known of a directory that is not in memory as a whole.
//!
//! Names that were used lately, and names that were asked for and are not there, lie in two generations of a hash map: when the
//! younger one is full the older one goes, but for names in it that were used since.
//!
//! *Invariants.* What is known is what the store says once the names are unlocked. It changes only while they are locked: so
//! no absence outlives the creation of the name.
//!
//! *Locking.* A leaf: nothing is waited for inside.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};

use super::Entry;
use super::filter::Filter;
use crate::store::NameRun;

/// Names that are kept at least: more than one operation is about.
const ROOM_MIN: usize = 64;
/// So many bytes of a filter count as a name.
const NAME_BYTES: usize = 64;

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It leads here.
    Found(Entry),
    /// It is not there.
    Absent,
    /// Nothing: the store has to be asked.
    Unknown,
}

impl From<Option<Entry>> for Known {
    fn from(entry: Option<Entry>) -> Self {
        entry.map_or(Self::Absent, Self::Found)
    }
}

/// A name that is known; no entry: it is not there.
struct Slot {
    entry: Option<Entry>,
    used: bool,
}

type Generation = HashMap<Box<[u8]>, Slot, RandomState>;

/// What is known of the names of one directory.
#[derive(Default)]
pub(crate) struct Partial(Mutex<KnownNames>);

impl Partial {
    pub(super) fn lock(&self) -> MutexGuard<'_, KnownNames> {
        self.0.lock()
    }
}

/// The same, locked.
#[derive(Default)]
pub(super) struct KnownNames {
    young: Generation,
    old: Generation,
    /// Names that may be kept.
    room: usize,
    /// Names of the directory, in memory and in the store.
    pub(super) names: u32,
    /// Above all cookies that names have or had.
    pub(super) next_cookie: u64,
    /// How often the names were locked for a change.
    pub(super) changes: u64,
    /// Names that the store was asked for since the directory is partial.
    pub(super) asked: u64,
    /// Names in memory that were counted.
    pub(super) counted: i64,
    /// All names, and some that went; made when a name is first asked for in vain.
    filter: Option<Filter>,
}

impl KnownNames {
    /// Begins anew, of a directory of so many names; with a filter that has them all, if there is one.
    pub(super) fn begin(&mut self, names: u32, next_cookie: u64, filter: Option<Filter>) {
        let (counted, room) = (self.counted, self.room);
        // While the directory was in memory as a whole nobody counted: what was asked before is not to be believed.
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

    /// What is known of a name, for a reader.
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
            None if self.filter.as_ref().is_some_and(|it| it.excludes(name)) => Known::Absent,
            None => Known::Unknown,
        }
    }

    /// As [`look`](Self::look), for a name that is changed next: it stays until then.
    pub(super) fn hold(&mut self, name: &[u8]) -> Known {
        let known = self.look(name);
        if let Some((name, slot)) = self.old.remove_entry(name) {
            self.insert(name, slot.entry);
        }
        known
    }

    /// The entry of a name, if one is known.
    pub(super) fn entry(&self, name: &[u8]) -> Option<Entry> {
        let slot = self.young.get(name).or_else(|| self.old.get(name));
        slot?.entry
    }

    /// From now on a name leads here, or (`None`) is not there. The names of the directory are locked.
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
        // Not all, or the next one would find no room either.
        let stay = gone.into_iter().filter(|(_, slot)| slot.used);
        self.young.extend(stay.take(room / 4).map(|(name, slot)| {
            let entry = slot.entry;
            (name, Slot { entry, used })
        }));
    }

    /// There is a name that was not there.
    pub(super) fn appears(&mut self, name: &[u8]) {
        if let Some(filter) = &mut self.filter {
            filter.add(name);
        }
    }

    /// A name is not there any more.
    pub(super) fn disappears(&mut self) {
        let names = u64::from(self.names);
        // It is filled again by those that ask in vain.
        self.filter.take_if(|filter| !filter.remove(names));
    }

    /// Somebody asked the store in vain: the cookie behind which it is to be asked for names that the filter misses.
    pub(super) fn filter_misses(&mut self) -> Option<u64> {
        let names = u64::from(self.names);
        let filter = self.filter.get_or_insert_with(|| Filter::new(names));
        filter.missing_behind()
    }

    /// These are the names behind [that cookie](Self::filter_misses); none: there are no more.
    pub(super) fn fill_filter(&mut self, run: &NameRun) {
        if let Some(filter) = &mut self.filter {
            run.iter().for_each(|entry| filter.add(entry.name));
            filter.reaches(run.last_cookie());
        }
    }

    /// So many names may be kept from now on.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Names in memory, and what the filter takes in names.
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
            assert_eq!(known.look(&name(0)), Known::Absent, "after {number}");
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
        assert_eq!((asked, known.look(b"none")), (4, Known::Absent));
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
        assert_eq!(known.look(b"a"), Known::Absent);
        known.put(b"a", entry(2));
        assert_eq!(known.look(b"a"), entry(2).into());
        known.begin(0, 3, None);
        assert_eq!(known.look(b"a"), Known::Unknown);
    }
}
