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

mod chunk;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use holdfast_core::store::EntryRecord;
use holdfast_types::{FileType, Ino};

use super::tombstones::Gone;
use chunk::Chunk;
use holdfast_sync::collections::{entry_bytes, table_bytes};

/// Names up to which looking at each is good enough.
const FEW: usize = 64;

/// A name and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Name<'n> {
    pub(in crate::store) bytes: &'n [u8],
    pub(in crate::store) ino: Ino,
    pub(in crate::store) kind: FileType,
}

/// What a place of a directory holds now, and held below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Place<'n> {
    pub(in crate::store) cookie: u64,
    /// The hash of the name that the layers below have here, which went.
    pub(in crate::store) gone: Option<u32>,
    /// The name that is here now.
    pub(in crate::store) now: Option<Name<'n>>,
}

impl Place<'_> {
    /// What is here now, as the core knows it.
    pub(in crate::store) fn entry(&self) -> Option<EntryRecord> {
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
pub(in crate::store) struct Names {
    /// By the least place that each may have.
    chunks: BTreeMap<u64, Chunk>,
    /// Behind all of them.
    end: Chunk,
    /// The least place that `end` may have.
    from: u64,
    gone: Gone,
    count: usize,
    /// Places by names, once somebody looked for one among many.
    by_name: OnceLock<HashMap<Box<[u8]>, u64, RandomState>>,
    /// The greatest place of a name that came or went.
    last: u64,
}

impl Names {
    /// A name appears.
    pub(in crate::store) fn enter(&mut self, cookie: u64, name: Name<'_>) {
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
    pub(in crate::store) fn leave(&mut self, name: &[u8], cookie: u64, hash: impl FnOnce() -> u32) {
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
    pub(in crate::store) fn find(&self, name: &[u8]) -> Option<(u64, Name<'_>)> {
        let cookie = if self.count <= FEW {
            let mut here = self.appeared(0);
            here.find(|(_, here)| here.bytes == name)?.0
        } else {
            let all = || {
                let here = self.appeared(0);
                here.map(|(cookie, here)| (here.bytes.into(), cookie))
                    .collect()
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
    pub(in crate::store) fn is_gone(&self, cookie: u64) -> bool {
        self.gone.contains(cookie)
    }

    /// How many places changed.
    pub(in crate::store) fn len(&self) -> usize {
        self.count + self.gone.len()
    }

    /// Bytes of memory. Goes over the chunks.
    pub(super) fn memory(&self) -> usize {
        let chunks = self.chunks.values();
        let each = chunks.map(|chunk| entry_bytes::<(u64, Chunk)>() + chunk.memory());
        let by_name = self.by_name.get().map_or(0, |places| {
            let chunks = self.chunks.values().chain([&self.end]);
            let names: usize = chunks.map(Chunk::name_bytes).sum();
            table_bytes::<(Box<[u8]>, u64)>(places.capacity()) + names
        });
        size_of::<Self>() + each.sum::<usize>() + self.end.memory() + self.gone.memory() + by_name
    }

    /// Above all cookies that names had which are known here.
    pub(in crate::store) fn next_cookie(&self) -> u64 {
        self.last.saturating_add(1)
    }

    /// What a directory must remember as its next cookie, that had to remember `before`; 0 if it
    /// need not, because a name is there that has the greatest one.
    pub(in crate::store) fn remembered(&self, before: u64) -> u64 {
        let next = self.next_cookie();
        let mut last = self.after(self.last.saturating_sub(1));
        if before <= next && last.next().is_some_and(|place| place.now.is_some()) {
            return 0;
        }
        before.max(next)
    }

    /// The names behind a cookie that appeared, in order. Of those that went nothing is looked at: they may be many.
    fn appeared(&self, cookie: u64) -> impl Iterator<Item = (u64, Name<'_>)> {
        let behind = (Bound::Excluded(cookie), Bound::Unbounded);
        let behind_first =
            |chunk: &Chunk| chunk.slots.partition_point(|slot| slot.cookie <= cookie);
        let first = self.chunks.range(..=cookie).next_back();
        let first = first.map(|(_, chunk)| (chunk, behind_first(chunk)));
        let rest = self.chunks.range(behind).map(|(_, chunk)| (chunk, 0));
        let end = (&self.end, behind_first(&self.end));
        let chunks = first.into_iter().chain(rest).chain([end]);
        chunks.flat_map(|(chunk, from)| {
            let slots = chunk.slots.range(from..);
            slots.map(move |slot| (slot.cookie, slot.named(chunk)))
        })
    }

    /// The places behind a cookie, in order.
    pub(in crate::store) fn after(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        let mut gone = self.gone.after(cookie).peekable();
        let mut slots = self.appeared(cookie).peekable();
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

#[cfg(test)]
mod tests;
