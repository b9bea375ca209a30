//! What changed of one directory's names since the last checkpoint.
//!
//! Names that appeared lie in *chunks*, by their places (cookies): names mostly appear at the end, so
//! that a chunk is filled once and costs little more than the bytes of its names; the last one is at
//! hand. Of names from below that went only the place and the hash are kept: that is what the trees
//! are told.
//!
//! *Invariants.* A place is in `gone` if the layers below have a name there that went. Names from
//! `from` on are in `end`, those before it in the chunk with the greatest key that is not above their
//! place, ascending; all keys are below `from`.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;

use foldhash::fast::RandomState;
use holdfast_core::store::EntryRecord;
use holdfast_types::{FileType, Ino};

use super::gone::Gone;

/// Names of a chunk.
const CHUNK: usize = 128;
/// Bytes of names that went, which a chunk may keep in any case.
const IDLE_MAX: usize = 1024;
/// Names up to which looking at each is good enough.
const FEW: usize = 64;

/// A name and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'n> {
    pub(super) bytes: &'n [u8],
    pub(super) ino: Ino,
    pub(super) kind: FileType,
}

/// What a place of a directory holds now, and held below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'n> {
    pub(super) cookie: u64,
    /// The hash of the name that the layers below have here, which went.
    pub(super) gone: Option<u32>,
    /// The name that is here now.
    pub(super) now: Option<Name<'n>>,
}

impl Place<'_> {
    /// What is here now, as the core knows it.
    pub(super) fn entry(&self) -> Option<EntryRecord> {
        let name = self.now?;
        Some(EntryRecord {
            name: name.bytes.into(),
            cookie: self.cookie,
            ino: name.ino,
            kind: name.kind,
        })
    }
}

/// The changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// By the least place that each may have.
    chunks: BTreeMap<u64, Chunk>,
    /// Behind all of them.
    end: Chunk,
    /// The least place that `end` may have.
    from: u64,
    gone: Gone,
    count: usize,
    /// Places by names, once somebody looked for one among many.
    by_name: OnceCell<HashMap<Box<[u8]>, u64, RandomState>>,
    /// The greatest place of a name that came or went.
    last: u64,
}

/// Some names, by their places.
#[derive(Clone, Debug, Default)]
struct Chunk {
    /// Names mostly come at the end and go from the beginning.
    slots: VecDeque<Slot>,
    bytes: Vec<u8>,
    /// How many bytes belong to names that went.
    idle: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    cookie: u64,
    ino: Ino,
    at: u32,
    len: u16,
    kind: FileType,
}

impl Chunk {
    fn name(&self, slot: &Slot) -> &[u8] {
        let at = slot.at as usize;
        self.bytes
            .get(at..at + usize::from(slot.len))
            .unwrap_or(&[])
    }

    fn place(&self, cookie: u64) -> Result<usize, usize> {
        match (self.slots.front(), self.slots.back()) {
            (Some(first), _) if first.cookie == cookie => Ok(0),
            (_, Some(last)) if last.cookie < cookie => Err(self.slots.len()),
            _ => self.slots.binary_search_by_key(&cookie, |slot| slot.cookie),
        }
    }

    fn put(&mut self, cookie: u64, name: Name<'_>) -> bool {
        let slot = Slot {
            cookie,
            ino: name.ino,
            at: self.bytes.len() as u32,
            // Names have at most 255 bytes.
            len: name.bytes.len() as u16,
            kind: name.kind,
        };
        self.bytes.extend_from_slice(name.bytes);
        match self.place(cookie) {
            Ok(place) => {
                let before = std::mem::replace(&mut self.slots[place], slot);
                self.lost(before.len);
                false
            }
            Err(place) => {
                if place == self.slots.len() {
                    self.slots.push_back(slot);
                } else {
                    self.slots.insert(place, slot);
                }
                true
            }
        }
    }

    /// An empty one, with room for as much as this one has.
    fn of_this_size(&self) -> Self {
        Self {
            slots: VecDeque::with_capacity(CHUNK),
            bytes: Vec::with_capacity(self.bytes.len()),
            idle: 0,
        }
    }

    /// Has a place between its names, or in their stead, and too many names for another?
    fn must_be_split(&self, cookie: u64) -> bool {
        self.slots.len() >= CHUNK && matches!(self.place(cookie), Err(place) if place < CHUNK)
    }

    /// Can a name be put there, without more names than there may be?
    fn takes(&self, cookie: u64) -> bool {
        self.slots.len() < CHUNK || self.place(cookie).is_ok()
    }

    /// Takes the upper half out; also tells the least place in it.
    fn split(&mut self) -> (u64, Self) {
        let (middle, upper) = (self.slots[CHUNK / 2].cookie, self.part(CHUNK / 2));
        self.slots.truncate(CHUNK / 2);
        *self = self.part(0);
        (middle, upper)
    }

    /// Drops the bytes of names that went, where they are many.
    fn lost(&mut self, bytes: u16) {
        self.idle += usize::from(bytes);
        if self.idle > IDLE_MAX && self.idle > self.bytes.len() / 2 {
            *self = self.part(0);
        }
    }

    /// Takes a name out, if it is there.
    fn take(&mut self, cookie: u64) -> Option<()> {
        let left = match self.place(cookie).ok()? {
            0 => self.slots.pop_front()?,
            place => self.slots.remove(place)?,
        };
        if self.slots.is_empty() {
            self.bytes.clear();
            self.idle = 0;
        } else {
            self.lost(left.len);
        }
        Some(())
    }

    /// Has it a name at this place or behind it?
    fn reaches(&self, cookie: u64) -> bool {
        self.slots.back().is_some_and(|last| last.cookie >= cookie)
    }

    /// The names from the slot `from` on.
    fn part(&self, from: usize) -> Self {
        let mut part = Self::default();
        for slot in self.slots.range(from..) {
            let at = part.bytes.len() as u32;
            part.bytes.extend_from_slice(self.name(slot));
            part.slots.push_back(Slot { at, ..*slot });
        }
        part
    }
}

impl Names {
    /// A name appears.
    pub(super) fn enter(&mut self, cookie: u64, name: Name<'_>) {
        self.last = self.last.max(cookie);
        if let Some(places) = self.by_name.get_mut() {
            places.insert(name.bytes.into(), cookie);
        }
        if cookie >= self.from {
            self.enter_at_the_end(cookie, name);
        } else {
            self.enter_before(cookie, name);
        }
    }

    fn enter_at_the_end(&mut self, cookie: u64, name: Name<'_>) {
        if self.end.must_be_split(cookie) {
            let (middle, upper) = self.end.split();
            let lower = std::mem::replace(&mut self.end, upper);
            self.chunks.insert(self.from, lower);
            self.from = middle;
            return self.enter(cookie, name);
        }
        if !self.end.takes(cookie) {
            let next = self.end.of_this_size();
            let full = std::mem::replace(&mut self.end, next);
            self.chunks.insert(self.from, full);
            self.from = cookie;
        }
        self.count += usize::from(self.end.put(cookie, name));
    }

    fn enter_before(&mut self, cookie: u64, name: Name<'_>) {
        let chunk = self.chunks.range_mut(..=cookie).next_back();
        if let Some((_, chunk)) = chunk {
            if chunk.must_be_split(cookie) {
                let (middle, upper) = chunk.split();
                self.chunks.insert(middle, upper);
                return self.enter_before(cookie, name);
            }
            if chunk.takes(cookie) {
                self.count += usize::from(chunk.put(cookie, name));
                return;
            }
        }
        let mut chunk = Chunk::default();
        self.count += usize::from(chunk.put(cookie, name));
        self.chunks.insert(cookie, chunk);
    }

    /// A name disappears. `hash`: how its hash is found.
    pub(super) fn leave(&mut self, name: &[u8], cookie: u64, hash: impl FnOnce() -> u32) {
        self.last = self.last.max(cookie);
        if let Some(places) = self.by_name.get_mut()
            && places.get(name) == Some(&cookie)
        {
            places.remove(name);
        }
        let left = if cookie >= self.from {
            self.end.take(cookie)
        } else {
            self.take_before(cookie)
        };
        match left {
            Some(()) => self.count -= 1,
            // It is below.
            None => self.gone.insert(cookie, hash()),
        }
    }

    /// Takes a name out of the chunks before the end, if it is there.
    fn take_before(&mut self, cookie: u64) -> Option<()> {
        // Names mostly go from the beginning.
        let mut first = self.chunks.first_entry()?;
        if first.get().reaches(cookie) {
            first.get_mut().take(cookie)?;
            if first.get().slots.is_empty() {
                first.remove();
            }
            return Some(());
        }
        let (key, chunk) = self.chunks.range_mut(..=cookie).next_back()?;
        chunk.take(cookie)?;
        if chunk.slots.is_empty() {
            let key = *key;
            self.chunks.remove(&key);
        }
        Some(())
    }

    /// Where a name is that appeared.
    pub(super) fn find(&self, name: &[u8]) -> Option<(u64, Name<'_>)> {
        let cookie = if self.count <= FEW {
            let mut all = self.after(0);
            all.find(|place| place.now.is_some_and(|now| now.bytes == name))?
                .cookie
        } else {
            let all = || {
                let all = self.after(0);
                let named = all.filter_map(|place| Some((place.now?.bytes.into(), place.cookie)));
                named.collect()
            };
            *self.by_name.get_or_init(all).get(name)?
        };
        let chunk = if cookie >= self.from {
            &self.end
        } else {
            self.chunks.range(..=cookie).next_back()?.1
        };
        let slot = &chunk.slots[chunk.place(cookie).ok()?];
        Some((cookie, slot.named(chunk)))
    }

    /// Did the name go that the layers below have at this place?
    pub(super) fn is_gone(&self, cookie: u64) -> bool {
        self.gone.contains(cookie)
    }

    /// How many places changed.
    pub(super) fn len(&self) -> usize {
        self.count + self.gone.len()
    }

    /// Above all cookies that names had which are known here.
    pub(super) fn next_cookie(&self) -> u64 {
        self.last.saturating_add(1)
    }

    /// What a directory must remember as its next cookie, that had to remember `before`; 0 if it
    /// need not, because a name is there that has the greatest one.
    pub(super) fn remembered(&self, before: u64) -> u64 {
        let next = self.next_cookie();
        let mut last = self.after(self.last.saturating_sub(1));
        if before <= next && last.next().is_some_and(|place| place.now.is_some()) {
            return 0;
        }
        before.max(next)
    }

    /// The places behind a cookie, in order.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        let behind = (Bound::Excluded(cookie), Bound::Unbounded);
        let mut gone = self.gone.after(cookie).peekable();
        let behind_first =
            |chunk: &Chunk| chunk.slots.partition_point(|slot| slot.cookie <= cookie);
        let first = self.chunks.range(..=cookie).next_back();
        let first = first.map(|(_, chunk)| (chunk, behind_first(chunk)));
        let rest = self.chunks.range(behind).map(|(_, chunk)| (chunk, 0));
        let end = (&self.end, behind_first(&self.end));
        let chunks = first.into_iter().chain(rest).chain([end]);
        let slots = chunks.flat_map(|(chunk, from)| {
            let slots = chunk.slots.range(from..);
            slots.map(move |slot| (slot.cookie, slot.named(chunk)))
        });
        let mut slots = slots.peekable();
        std::iter::from_fn(move || {
            let here = slots.peek().map_or(u64::MAX, |(cookie, _)| *cookie);
            let below = gone.peek().map_or(u64::MAX, |(cookie, _)| *cookie);
            let now = if here <= below { slots.next() } else { None };
            let gone = if below <= here { gone.next() } else { None };
            let cookie = match (now, gone) {
                (Some((cookie, _)), _) => cookie,
                (None, gone) => gone?.0,
            };
            Some(Place {
                cookie,
                gone: gone.map(|(_, hash)| hash),
                now: now.map(|(_, name)| name),
            })
        })
    }
}

impl Slot {
    fn named<'n>(&self, chunk: &'n Chunk) -> Name<'n> {
        Name {
            bytes: chunk.name(self),
            ino: self.ino,
            kind: self.kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::btree_map::Entry;

    fn enter(names: &mut Names, bytes: &[u8], cookie: u64) {
        let (ino, kind) = (Ino(cookie + 100), FileType::Regular);
        names.enter(cookie, Name { bytes, ino, kind });
    }

    fn leave(names: &mut Names, bytes: &[u8], cookie: u64) {
        names.leave(bytes, cookie, || u32::from(bytes[0]));
    }

    fn at(names: &Names, bytes: &[u8]) -> Option<u64> {
        names.find(bytes).map(|(cookie, _)| cookie)
    }

    #[test]
    fn what_came_and_went_leaves_nothing_to_fold() {
        let mut names = Names::default();
        enter(&mut names, b"a", 5);
        assert_eq!(at(&names, b"a"), Some(5));
        leave(&mut names, b"a", 5);
        assert_eq!(at(&names, b"a"), None);
        assert_eq!((names.after(0).count(), names.len()), (0, 0));
    }

    #[test]
    fn a_name_from_below_that_went_is_remembered_through_a_rename() {
        let mut names = Names::default();
        leave(&mut names, b"old", 5);
        enter(&mut names, b"new", 5);
        leave(&mut names, b"new", 5);
        enter(&mut names, b"newer", 5);
        let place = names.after(0).next().unwrap();
        assert_eq!((place.cookie, place.gone), (5, Some(u32::from(b'o'))));
        assert_eq!(place.now.unwrap().bytes, b"newer");
        assert!(names.is_gone(5));
        assert_eq!(at(&names, b"new"), None);
        assert_eq!(at(&names, b"newer"), Some(5));
    }

    #[test]
    fn replacing_a_name_below_by_one_at_a_new_place_keeps_both_places() {
        let mut names = Names::default();
        leave(&mut names, b"a", 5);
        enter(&mut names, b"a", 9);
        assert_eq!(at(&names, b"a"), Some(9));
        assert_eq!(names.after(0).count(), 2);
        leave(&mut names, b"a", 9);
        assert_eq!(at(&names, b"a"), None);
        assert_eq!(names.after(5).count(), 0);
        assert!(names.is_gone(5) && !names.is_gone(9));
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_map(
            steps in prop::collection::vec((0_u64..700, any::<bool>(), any::<bool>()), 1..1500),
            from in 0_u64..700,
        ) {
            let mut names = Names::default();
            // What is at each place, and did a name from below go from there?
            let mut map: BTreeMap<u64, (bool, Option<Vec<u8>>)> = BTreeMap::new();
            let mut next = 700;
            for (place, enters, at_the_end) in steps {
                let cookie = if at_the_end && enters { next } else { place + 1 };
                let taken = map.get(&cookie).is_some_and(|(_, now)| now.is_some());
                let bytes = format!("{cookie:x}-name").into_bytes();
                if enters && !taken {
                    enter(&mut names, &bytes, cookie);
                    map.entry(cookie).or_default().1 = Some(bytes);
                    next += 1;
                } else if taken {
                    leave(&mut names, &bytes, cookie);
                    let (gone, now) = map.get_mut(&cookie).unwrap();
                    *now = None;
                    if !*gone {
                        map.remove(&cookie);
                    }
                } else if let Entry::Vacant(entry) = map.entry(cookie) {
                    leave(&mut names, b"below", cookie);
                    entry.insert((true, None));
                }
            }
            prop_assert_eq!(names.len(), map.values().map(|(gone, now)| {
                usize::from(*gone) + usize::from(now.is_some())
            }).sum::<usize>());
            let found: Vec<_> = names.after(from).map(|place| {
                (place.cookie, place.gone.is_some(), place.now.map(|now| now.bytes.to_vec()))
            }).collect();
            let expected: Vec<_> = map.range(from + 1..).map(|(cookie, (gone, now))| {
                (*cookie, *gone, now.clone())
            }).collect();
            prop_assert_eq!(found, expected);
            for (cookie, (gone, now)) in &map {
                prop_assert_eq!(names.is_gone(*cookie), *gone);
                if let Some(now) = now {
                    prop_assert_eq!(at(&names, now), Some(*cookie));
                }
            }
        }
    }

    #[test]
    fn a_cookie_that_went_is_remembered_unless_a_greater_one_is_there() {
        let mut names = Names::default();
        enter(&mut names, b"a", 5);
        assert_eq!(names.remembered(0), 0);
        assert_eq!(names.remembered(9), 9);
        enter(&mut names, b"b", 6);
        names.leave(b"b", 6, || 1);
        assert_eq!((names.next_cookie(), names.remembered(0)), (7, 7));
        enter(&mut names, b"c", 7);
        assert_eq!((names.next_cookie(), names.remembered(7)), (8, 0));
        // From below.
        names.leave(b"z", 20, || 1);
        assert_eq!(names.remembered(7), 21);
    }
}
