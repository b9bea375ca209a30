//! The names of one directory.
//!
//! Names live in a vector in the order of their cookies, which only grow: a listing that stopped
//! at a cookie goes on behind it by binary search, whatever was added or removed meanwhile. A
//! removed name leaves a gap until gaps outnumber names, then the vector is closed up; cookies
//! stay. A table from name to position is added once a directory outgrows a linear search.
//!
//! *Invariants.* Slots are in strictly ascending cookie order. `live` is the number of slots that
//! hold a name. When `index` exists it holds the position of every such slot and no other.
//!
//! *Locking.* None inside: the owner's lock guards it.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::types::{Errno, FileType, Ino, Result};

/// Directories up to this many names are searched linearly.
const LINEAR_MAX: usize = 8;
/// Cookies 1 and 2 belong to `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;

const HASH: FixedState = FixedState::with_seed(0x686f_6c64_6661_7374);

/// A name of a directory. A slot whose name is empty is a gap.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name's bytes.
    pub(crate) name: Box<[u8]>,
    /// Position in the listing.
    pub(crate) cookie: u64,
    /// The inode it leads to.
    pub(crate) ino: Ino,
    /// That inode's type.
    pub(crate) kind: FileType,
}

/// The names of one directory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    slots: Vec<Entry>,
    index: Option<Box<HashTable<u32>>>,
    live: u32,
    /// The cookie that the last new name got.
    last_cookie: u64,
    /// Removed: nothing can be created in it any more.
    pub(crate) dead: bool,
    /// All its names are here (else the store has to be asked first).
    pub(crate) complete: bool,
}

fn hash(name: &[u8]) -> u64 {
    HASH.hash_one(name)
}

impl Directory {
    /// A new, empty directory.
    pub(crate) fn empty() -> Self {
        Self {
            complete: true,
            ..Self::default()
        }
    }

    /// Number of names, `.` and `..` not counted.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// The greatest cookie so far.
    pub(crate) fn last_cookie(&self) -> u64 {
        self.last_cookie
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        match &self.index {
            Some(index) => index
                .find(hash(name), |&at| *self.slots[at as usize].name == *name)
                .map(|&at| at as usize),
            None => self.slots.iter().position(|slot| *slot.name == *name),
        }
    }

    /// The entry of this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        debug_assert!(!name.is_empty());
        self.position(name).map(|at| &self.slots[at])
    }

    /// The entry with exactly this cookie.
    pub(crate) fn by_cookie(&self, cookie: u64) -> Option<&Entry> {
        let at = self
            .slots
            .binary_search_by_key(&cookie, |slot| slot.cookie)
            .ok()?;
        Some(&self.slots[at]).filter(|slot| !slot.name.is_empty())
    }

    /// Entries with cookies greater than `after`, in order.
    pub(crate) fn iter_after(&self, after: u64) -> impl Iterator<Item = &Entry> {
        let start = self.slots.partition_point(|slot| slot.cookie <= after);
        self.slots[start..]
            .iter()
            .filter(|slot| !slot.name.is_empty())
    }

    /// Adds a name that is not there; returns its cookie.
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(crate) fn insert(&mut self, name: &[u8], ino: Ino, kind: FileType) -> Result<u64> {
        let cookie = (self.last_cookie + 1).max(FIRST_COOKIE);
        self.insert_at(Entry {
            name: name.into(),
            cookie,
            ino,
            kind,
        })?;
        Ok(cookie)
    }

    /// Adds an entry whose cookie is known (loading): cookies must arrive in ascending order.
    ///
    /// # Errors
    /// `EUCLEAN` if they do not; `ENOSPC` when the directory cannot hold more names.
    pub(crate) fn insert_at(&mut self, entry: Entry) -> Result<()> {
        if entry.cookie <= self.last_cookie {
            return Err(Errno::EUCLEAN);
        }
        // The kernel's cookies are signed.
        if entry.cookie >= i64::MAX as u64 || self.slots.len() >= u32::MAX as usize {
            return Err(Errno::ENOSPC);
        }
        debug_assert!(self.position(&entry.name).is_none());
        self.last_cookie = entry.cookie;
        let at = self.slots.len() as u32;
        self.slots.push(entry);
        self.live += 1;
        if let Some(index) = &mut self.index {
            let slots = &self.slots;
            index.insert_unique(hash(&slots[at as usize].name), at, |&other| {
                hash(&slots[other as usize].name)
            });
        } else if self.slots.len() > LINEAR_MAX {
            self.rebuild_index();
        }
        Ok(())
    }

    /// Removes a name; returns its entry.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let at = match &mut self.index {
            Some(index) => {
                let slots = &self.slots;
                let found = index
                    .find_entry(hash(name), |&at| *slots[at as usize].name == *name)
                    .ok()?;
                found.remove().0 as usize
            }
            None => self.position(name)?,
        };
        let slot = &mut self.slots[at];
        let gone = Entry {
            name: std::mem::take(&mut slot.name),
            cookie: slot.cookie,
            ino: slot.ino,
            kind: slot.kind,
        };
        self.live -= 1;
        self.close_gaps();
        Some(gone)
    }

    /// Lets a name lead to another inode; cookie and position stay. Returns the old inode.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) -> Option<Ino> {
        let at = self.position(name)?;
        let slot = &mut self.slots[at];
        slot.kind = kind;
        Some(std::mem::replace(&mut slot.ino, ino))
    }

    /// Gives an entry another name that is not there; position and cookie stay, so that a listing
    /// under way never meets the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        let Some(at) = self.position(from) else {
            return 0;
        };
        if let Some(index) = &mut self.index {
            let slots = &self.slots;
            if let Ok(found) = index.find_entry(hash(from), |&at| *slots[at as usize].name == *from)
            {
                found.remove();
            }
        }
        self.slots[at].name = to.into();
        if let Some(index) = &mut self.index {
            let slots = &self.slots;
            index.insert_unique(hash(to), at as u32, |&other| {
                hash(&slots[other as usize].name)
            });
        }
        self.slots[at].cookie
    }

    fn close_gaps(&mut self) {
        if self.live == 0 {
            self.slots = Vec::new();
            self.index = None;
        } else if self.slots.len() > 2 * self.live as usize + LINEAR_MAX {
            self.slots.retain(|slot| !slot.name.is_empty());
            self.slots.shrink_to_fit();
            self.index = None;
            if self.slots.len() > LINEAR_MAX {
                self.rebuild_index();
            }
        }
    }

    fn rebuild_index(&mut self) {
        let mut index = HashTable::with_capacity(self.slots.len());
        for (at, slot) in self.slots.iter().enumerate() {
            if !slot.name.is_empty() {
                index.insert_unique(hash(&slot.name), at as u32, |&other: &u32| {
                    hash(&self.slots[other as usize].name)
                });
            }
        }
        self.index = Some(Box::new(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn name(number: u16) -> Vec<u8> {
        format!("name-{number}").into_bytes()
    }

    #[test]
    fn cookies_grow_and_survive_the_closing_of_gaps() {
        let mut dir = Directory::empty();
        for number in 0..1000 {
            dir.insert(&name(number), Ino(u64::from(number) + 2), FileType::Regular)
                .unwrap();
        }
        let kept = dir.get(&name(999)).unwrap().cookie;
        for number in 0..999 {
            assert!(dir.remove(&name(number)).is_some());
        }
        assert!(dir.slots.len() < 20, "gaps were closed");
        assert_eq!(dir.get(&name(999)).unwrap().cookie, kept);
        assert_eq!(dir.by_cookie(kept).unwrap().ino, Ino(1001));
        let fresh = dir.insert(b"fresh", Ino(5), FileType::Regular).unwrap();
        assert!(fresh > kept);
        dir.remove(&name(999));
        dir.remove(b"fresh");
        assert!(dir.insert(b"again", Ino(6), FileType::Regular).unwrap() > fresh);
    }

    #[test]
    fn loading_out_of_order_is_corruption() {
        let mut dir = Directory::default();
        let entry = |cookie| Entry {
            name: format!("n{cookie}").into_bytes().into(),
            cookie,
            ino: Ino(9),
            kind: FileType::Fifo,
        };
        dir.insert_at(entry(10)).unwrap();
        assert_eq!(dir.insert_at(entry(10)), Err(Errno::EUCLEAN));
    }

    proptest! {
        #[test]
        fn agrees_with_an_ordered_map(steps in prop::collection::vec((0_u16..40, 0_u8..5), 0..400)) {
            let mut dir = Directory::empty();
            let mut model: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
            for (step, (number, what)) in steps.into_iter().enumerate() {
                let key = name(number);
                let ino = step as u64 + 10;
                match what {
                    0 | 1 => {
                        model.entry(key).or_insert_with_key(|key| {
                            (dir.insert(key, Ino(ino), FileType::Regular).unwrap(), ino)
                        });
                    }
                    2 => {
                        let gone = dir.remove(&key).map(|entry| (entry.cookie, entry.ino.0));
                        prop_assert_eq!(gone, model.remove(&key));
                    }
                    3 => {
                        let to = name(number + 100);
                        if let Some(held) = model.remove(&key).filter(|_| !model.contains_key(&to))
                        {
                            prop_assert_eq!(dir.rename(&key, &to), held.0);
                            model.insert(to, held);
                        } else {
                            dir.remove(&key);
                        }
                    }
                    _ => {
                        let old = dir.replace(&key, Ino(ino), FileType::Regular).map(|old| old.0);
                        prop_assert_eq!(old, model.get(&key).map(|&(_, old)| old));
                        if let Some(held) = model.get_mut(&key) { held.1 = ino; }
                    }
                }
                prop_assert_eq!(dir.len() as usize, model.len());
            }
            let mut listed: Vec<_> =
                dir.iter_after(0).map(|e| (e.name.to_vec(), (e.cookie, e.ino.0))).collect();
            prop_assert!(listed.is_sorted_by_key(|(_, (cookie, _))| *cookie));
            listed.sort();
            prop_assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
        }
    }
}
