//! A directory's names that changed since the last checkpoint.
//!
//! Of a removed name in a lower layer only the cookie and the hash are kept, which suffices to
//! delete it from the trees.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use holdfast_core::store::EntryRecord;
use holdfast_types::{FileType, Ino};

use holdfast_sync::collections::{map_bytes, table_bytes};

/// Up to so many names a search visits each.
const FEW: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Name<'n> {
    pub(in crate::store) bytes: &'n [u8],
    pub(in crate::store) ino: Ino,
    pub(in crate::store) kind: FileType,
}

/// The present and the removed name at a cookie of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Place<'n> {
    pub(in crate::store) cookie: u64,
    /// The hash of the removed name, if a lower layer has one here.
    pub(in crate::store) gone: Option<u32>,
    /// The present name.
    pub(in crate::store) now: Option<Name<'n>>,
}

impl Place<'_> {
    /// The present name, as a record of the core.
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

/// An added name.
#[derive(Clone, Debug)]
struct Added {
    name: Box<[u8]>,
    ino: Ino,
    kind: FileType,
}

impl Added {
    fn get(&self) -> Name<'_> {
        Name {
            bytes: &self.name,
            ino: self.ino,
            kind: self.kind,
        }
    }

    /// Bytes that an allocator hands out for the name.
    fn bytes(&self) -> usize {
        self.name.len().next_multiple_of(16)
    }
}

#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Names {
    /// By cookie.
    added: BTreeMap<u64, Added>,
    /// The hashes of names in lower layers that were removed, by cookie.
    removed: BTreeMap<u64, u32>,
    /// Cookies by name, once one of many was searched.
    by_name: OnceLock<HashMap<Box<[u8]>, u64, RandomState>>,
    /// The greatest cookie of any name added or removed.
    last: u64,
    /// Bytes allocated for the names in `added`.
    name_bytes: usize,
}

impl Names {
    /// Adds a name.
    pub(in crate::store) fn enter(&mut self, cookie: u64, name: Name<'_>) {
        self.last = self.last.max(cookie);
        if let Some(cookies) = self.by_name.get_mut() {
            cookies.insert(name.bytes.into(), cookie);
        }
        let added = Added {
            name: name.bytes.into(),
            ino: name.ino,
            kind: name.kind,
        };
        self.name_bytes += added.bytes();
        if let Some(replaced) = self.added.insert(cookie, added) {
            self.name_bytes -= replaced.bytes();
        }
    }

    /// Removes a name. `hash` computes its hash, if needed.
    pub(in crate::store) fn leave(&mut self, name: &[u8], cookie: u64, hash: impl FnOnce() -> u32) {
        self.last = self.last.max(cookie);
        if let Some(cookies) = self.by_name.get_mut()
            && cookies.get(name) == Some(&cookie)
        {
            cookies.remove(name);
        }
        match self.added.remove(&cookie) {
            Some(added) => self.name_bytes -= added.bytes(),
            // A lower layer has it.
            None => drop(self.removed.insert(cookie, hash())),
        }
    }

    /// An added name, with its cookie.
    pub(in crate::store) fn find(&self, name: &[u8]) -> Option<(u64, Name<'_>)> {
        if self.added.len() <= FEW {
            return self.appeared(0).find(|(_, here)| here.bytes == name);
        }
        let all = || {
            let all = self.added.iter();
            all.map(|(cookie, added)| (added.name.clone(), *cookie))
                .collect()
        };
        let cookie = *self.by_name.get_or_init(all).get(name)?;
        Some((cookie, self.added.get(&cookie)?.get()))
    }

    /// Was the name at this cookie removed, which a lower layer has?
    pub(in crate::store) fn is_gone(&self, cookie: u64) -> bool {
        self.removed.contains_key(&cookie)
    }

    /// The number of changed cookies.
    pub(in crate::store) fn len(&self) -> usize {
        self.added.len() + self.removed.len()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let by_name = self.by_name.get().map_or(0, |cookies| {
            table_bytes::<(Box<[u8]>, u64)>(cookies.capacity()) + self.name_bytes
        });
        let maps = ascending_bytes::<(u64, Added)>(self.added.len())
            + ascending_bytes::<(u64, u32)>(self.removed.len());
        size_of::<Self>() + self.name_bytes + by_name + maps
    }

    /// A cookie above those of all names added or removed.
    pub(in crate::store) fn next_cookie(&self) -> u64 {
        self.last.saturating_add(1)
    }

    /// The directory's stored `next_cookie`, which was `before`; 0 if none is needed, because the
    /// name with the greatest cookie exists.
    pub(in crate::store) fn remembered(&self, before: u64) -> u64 {
        let next = self.next_cookie();
        let mut last = self.after(self.last.saturating_sub(1));
        if before <= next && last.next().is_some_and(|place| place.now.is_some()) {
            return 0;
        }
        before.max(next)
    }

    /// The added names after a cookie, in order. Skips removed ones, which may be many.
    fn appeared(&self, cookie: u64) -> impl Iterator<Item = (u64, Name<'_>)> {
        let added = self.added.range(behind(cookie));
        added.map(|(cookie, added)| (*cookie, added.get()))
    }

    /// The changed places after a cookie, in order.
    pub(in crate::store) fn after(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        let mut gone = self.removed.range(behind(cookie)).peekable();
        let mut slots = self.appeared(cookie).peekable();
        std::iter::from_fn(move || {
            let here = slots.peek().map_or(u64::MAX, |(cookie, _)| *cookie);
            let below = gone.peek().map_or(u64::MAX, |(cookie, _)| **cookie);
            let now = if here <= below { slots.next() } else { None };
            let gone = if below <= here { gone.next() } else { None };
            let cookie = match (now, gone) {
                (Some((cookie, _)), _) => cookie,
                (None, gone) => *gone?.0,
            };
            Some(Place {
                cookie,
                gone: gone.map(|(_, hash)| *hash),
                now: now.map(|(_, name)| name),
            })
        })
    }
}

fn behind(cookie: u64) -> (Bound<u64>, Bound<u64>) {
    (Bound::Excluded(cookie), Bound::Unbounded)
}

/// As [`map_bytes`], of a map that is mostly filled at its end: its nodes are half full.
fn ascending_bytes<T>(len: usize) -> usize {
    map_bytes::<T>(len) / 3 * 4
}

#[cfg(test)]
mod tests;
