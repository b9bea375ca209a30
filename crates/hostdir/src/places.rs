//! The place of each inode that the core knows: its directory and name.
//!
//! An inode that is not open above has no descriptor. An operation on it opens its name, and checks
//! that it is still the same file; if not, it opens its handle, if there is one. A place stays
//! until the core drops its inode. That of a directory also stays while an inode below it is known.

use holdfast_core::types::{FileType, Ino, Time};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::identity::Identity;
use crate::sys::Handle;

/// Bytes of an entry of the table, without its name.
const COST: u64 = 200;

#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) parent: Ino,
    pub(crate) name: Arc<[u8]>,
    pub(crate) is: Identity,
}

struct Kept {
    place: Place,
    /// Has it extended attributes, while its `ctime` is this one?
    xattrs: Option<(Time, bool)>,
    /// Of an inode that was open before: it may have been moved since.
    handle: Option<Handle>,
    /// Does the core have the inode?
    held: bool,
    /// Places in this directory.
    below: u32,
}

#[derive(Default)]
pub(crate) struct Places {
    table: RwLock<HashMap<Ino, Kept>>,
    bytes: AtomicU64,
}

impl Places {
    pub(crate) fn get(&self, ino: Ino) -> Option<Place> {
        let table = self.table.read();
        table.get(&ino).map(|kept| kept.place.clone())
    }

    /// Is an inode known at another place, or with another type than `kind`? Then a listing does
    /// not say whether the file was moved, has several names, or reuses the number.
    pub(crate) fn is_elsewhere(
        &self,
        ino: Ino,
        parent: Ino,
        name: &[u8],
        kind: Option<FileType>,
    ) -> bool {
        let table = self.table.read();
        table.get(&ino).is_some_and(|Kept { place, .. }| {
            let is_here = place.parent == parent && *place.name == *name;
            !is_here || kind.is_some_and(|kind| place.is.kind != kind)
        })
    }

    /// Stores the place of an inode that is passed to the core.
    pub(crate) fn note(&self, ino: Ino, parent: Ino, name: &[u8], is: Identity) {
        self.put(ino, parent, name, is, true);
    }

    /// Moves the place of an inode, if it is known.
    pub(crate) fn move_to(&self, ino: Ino, parent: Ino, name: &[u8], is: Identity) {
        self.put(ino, parent, name, is, false);
    }

    fn put(&self, ino: Ino, parent: Ino, name: &[u8], is: Identity, gets: bool) {
        if ino == Ino::ROOT {
            return;
        }
        let mut table = self.table.write();
        let was = match table.get_mut(&ino) {
            None if !gets => return,
            Some(kept) => {
                if kept.place.is != is {
                    kept.xattrs = None;
                    self.bytes.fetch_sub(bytes_of(&kept.handle), Relaxed);
                    kept.handle = None;
                }
                (kept.held, kept.place.is) = (kept.held || gets, is);
                if kept.place.parent == parent && *kept.place.name == *name {
                    return;
                }
                self.bytes.fetch_add(name.len() as u64, Relaxed);
                self.bytes.fetch_sub(kept.place.name.len() as u64, Relaxed);
                kept.place.name = name.into();
                Some(std::mem::replace(&mut kept.place.parent, parent))
            }
            None => {
                let place = Place {
                    parent,
                    name: name.into(),
                    is,
                };
                self.bytes.fetch_add(COST + name.len() as u64, Relaxed);
                let kept = Kept {
                    place,
                    xattrs: None,
                    handle: None,
                    held: true,
                    below: 0,
                };
                table.insert(ino, kept);
                None
            }
        };
        if let Some(kept) = table.get_mut(&parent) {
            kept.below += 1;
        }
        if let Some(was) = was {
            self.leave(&mut table, was);
        }
    }

    /// Has an inode extended attributes? `None`: not known since its change.
    pub(crate) fn has_xattrs(&self, ino: Ino, ctime: Time) -> Option<bool> {
        let table = self.table.read();
        let (at, has) = table.get(&ino)?.xattrs?;
        (at == ctime).then_some(has)
    }

    /// Stores whether it has extended attributes; a later change would change `ctime`.
    pub(crate) fn note_xattrs(&self, ino: Ino, ctime: Time, has: bool) {
        if let Some(kept) = self.table.write().get_mut(&ino) {
            kept.xattrs = Some((ctime, has));
        }
    }

    /// The file at this place is another one than the known inode, though they look alike: the next
    /// lookup assigns another number.
    pub(crate) fn replaced(&self, ino: Ino) {
        if let Some(kept) = self.table.write().get_mut(&ino) {
            kept.place.is = kept.place.is.of_none();
        }
    }

    /// Stores the handle of an inode, if it is known.
    pub(crate) fn note_handle(&self, ino: Ino, handle: Option<Handle>) {
        if let Some(kept) = self.table.write().get_mut(&ino) {
            self.bytes.fetch_add(bytes_of(&handle), Relaxed);
            self.bytes.fetch_sub(bytes_of(&kept.handle), Relaxed);
            kept.handle = handle;
        }
    }

    pub(crate) fn handle(&self, ino: Ino) -> Option<Handle> {
        self.table.read().get(&ino)?.handle.clone()
    }

    /// The core has dropped an inode.
    pub(crate) fn forget(&self, ino: Ino) {
        let mut table = self.table.write();
        let Some(kept) = table.get_mut(&ino) else {
            return;
        };
        kept.held = false;
        if kept.below == 0
            && let Some(kept) = table.remove(&ino)
        {
            self.bytes.fetch_sub(cost(&kept), Relaxed);
            self.leave(&mut table, kept.place.parent);
        }
    }

    /// One place less in a directory, which is removed with the last one if the core does not have
    /// it; and so on upwards.
    fn leave(&self, table: &mut HashMap<Ino, Kept>, dir: Ino) {
        let mut dir = dir;
        while let Some(kept) = table.get_mut(&dir) {
            kept.below = kept.below.saturating_sub(1);
            if kept.held || kept.below > 0 {
                return;
            }
            self.bytes.fetch_sub(cost(kept), Relaxed);
            let parent = kept.place.parent;
            table.remove(&dir);
            dir = parent;
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

fn bytes_of(handle: &Option<Handle>) -> u64 {
    handle.as_ref().map_or(0, Handle::len)
}

fn cost(kept: &Kept) -> u64 {
    COST + kept.place.name.len() as u64 + bytes_of(&kept.handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::HostNumber;
    fn is(number: u64) -> Identity {
        Identity {
            host: HostNumber {
                device: (0, 1),
                number,
            },
            kind: FileType::Directory,
            btime: None,
        }
    }

    #[test]
    fn a_directory_is_kept_for_what_is_below_it() {
        let places = Places::default();
        places.note(Ino(2), Ino::ROOT, b"two", is(2));
        places.note(Ino(3), Ino(2), b"three", is(3));
        places.note(Ino(4), Ino(3), b"four", is(4));
        places.forget(Ino(2));
        places.forget(Ino(3));
        assert!(places.get(Ino(2)).is_some() && places.get(Ino(3)).is_some());
        places.forget(Ino(4));
        let left = [2, 3, 4].map(|ino| places.get(Ino(ino)).is_some());
        assert_eq!((left, places.bytes()), ([false; 3], 0));
    }

    #[test]
    fn a_number_that_is_known_for_another_place_or_type_is_not_taken_for_this_one() {
        let places = Places::default();
        places.note(Ino(2), Ino::ROOT, b"two", is(2));
        let elsewhere = |dir, name: &[u8], kind| places.is_elsewhere(Ino(2), dir, name, kind);
        let dir = Some(FileType::Directory);
        assert!(!elsewhere(Ino::ROOT, b"two", dir));
        assert!(!elsewhere(Ino::ROOT, b"two", None));
        assert!(elsewhere(Ino::ROOT, b"other", dir));
        assert!(elsewhere(Ino(3), b"two", dir));
        assert!(elsewhere(Ino::ROOT, b"two", Some(FileType::Fifo)));
        places.forget(Ino(2));
        assert!(!elsewhere(Ino(3), b"two", dir), "nobody knows it");
    }

    #[test]
    fn only_what_is_known_is_moved() {
        let places = Places::default();
        places.note(Ino(2), Ino::ROOT, b"two", is(2));
        places.note(Ino(3), Ino(2), b"three", is(3));
        places.forget(Ino(2));
        places.move_to(Ino(2), Ino::ROOT, b"moved", is(2));
        places.move_to(Ino(4), Ino::ROOT, b"unknown", is(4));
        assert_eq!(&*places.get(Ino(2)).unwrap().name, b"moved");
        assert!(places.get(Ino(4)).is_none());
        places.forget(Ino(3));
        assert_eq!(places.bytes(), 0, "the core has neither");
    }

    #[test]
    fn what_moves_is_found_in_its_new_place() {
        let places = Places::default();
        places.note(Ino(2), Ino::ROOT, b"old", is(2));
        places.note(Ino(3), Ino::ROOT, b"new", is(3));
        places.note(Ino(4), Ino(2), b"file", is(4));
        places.forget(Ino(2));
        places.note(Ino(4), Ino(3), b"its other name", is(4));
        let place = places.get(Ino(4)).unwrap();
        assert_eq!(
            (place.parent, &*place.name),
            (Ino(3), &b"its other name"[..])
        );
        assert!(places.get(Ino(2)).is_none(), "nothing is below it any more");
        places.forget(Ino(3));
        places.forget(Ino(4));
        assert_eq!(places.bytes(), 0);
    }
}
