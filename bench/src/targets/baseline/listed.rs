//! All inodes on one list under one lock, as a kernel keeps those of a file system: each is put on
//! the list when it is born and taken off when it goes. Who wants to see them all walks it, and
//! pins each so that the lock need not be held while it is looked at.

use crate::targets::memory::{MemorySession, MemoryTree};
use crate::targets::{Session, Tree};
use anyhow::Result;
use holdfast_types::Errno;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The memory file system, and the list of its inodes.
pub(crate) struct ListedTree {
    memory: MemoryTree,
    list: InodeList,
}

impl ListedTree {
    pub(crate) fn new() -> Self {
        Self {
            memory: MemoryTree::new(),
            list: InodeList::default(),
        }
    }
}

impl Tree for ListedTree {
    type Session<'t> = ListedSession<'t>;

    fn session(&self) -> ListedSession<'_> {
        ListedSession {
            memory: self.memory.session(),
            list: &self.list,
            born: VecDeque::new(),
        }
    }

    fn close(self) -> Result<()> {
        self.memory.close()
    }
}

/// Calls that keep the list.
pub(crate) struct ListedSession<'t> {
    memory: MemorySession<'t>,
    list: &'t InodeList,
    /// Places of the inodes that were born here. Files are removed in the order they were made,
    /// so the first one's is taken; with another order the list would only hold others of them.
    born: VecDeque<usize>,
}

impl ListedSession<'_> {
    fn bear(&mut self) {
        self.born.push_back(self.list.add());
    }

    fn evict(&mut self) {
        if let Some(place) = self.born.pop_front() {
            self.list.remove(place);
        }
    }
}

impl Session for ListedSession<'_> {
    fn make_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.make_dir(path)?;
        self.bear();
        Ok(())
    }

    fn create(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.create(path)?;
        self.bear();
        Ok(())
    }

    fn stat(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.stat(path)
    }

    fn open(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.open(path)
    }

    fn walk(&mut self, path: &CStr) -> Result<u64, Errno> {
        self.memory.walk(path)
    }

    /// The list cannot be divided: the first part is all of it.
    fn iterate(&mut self, part: usize, _parts: usize, times: u64) -> Result<u64, Errno> {
        let mut met = 0;
        let times = if part == 0 { times } else { 0 };
        for _ in 0..times {
            self.list.each(|serial| {
                black_box(serial);
                met += 1;
            });
        }
        Ok(met)
    }

    fn unlink(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.unlink(path)?;
        self.evict();
        Ok(())
    }

    fn remove_dir(&mut self, path: &CStr) -> Result<(), Errno> {
        self.memory.remove_dir(path)?;
        self.evict();
        Ok(())
    }
}

/// A list of all inodes under one lock.
#[derive(Default)]
struct InodeList {
    links: Mutex<Links>,
}

/// Links in one allocation: a list that grows moves none.
const CHUNK: usize = 1024;

/// Links by place; those that are free are chained by `next`.
#[derive(Default)]
struct Links {
    chunks: Vec<Vec<Link>>,
    places: usize,
    first: Option<usize>,
    free: Option<usize>,
    born: u64,
}

/// What an inode carries; as far from the next one's as inodes are.
#[repr(align(128))]
struct Link {
    /// What identifies the inode.
    serial: u64,
    before: Option<usize>,
    next: Option<usize>,
    /// Walks that stand here.
    pins: usize,
    /// To be taken off with the last pin.
    gone: bool,
}

impl InodeList {
    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts one more inode on the list, and says where.
    fn add(&self) -> usize {
        self.lock().add()
    }

    /// Takes the inode at this place off.
    fn remove(&self, place: usize) {
        let mut links = self.lock();
        links.at(place).gone = true;
        links.settle(place);
    }

    /// Visits all of them, without the lock.
    fn each(&self, mut visit: impl FnMut(u64)) {
        let mut links = self.lock();
        let mut next = links.first;
        while let Some(place) = next {
            let link = links.at(place);
            let serial = link.serial;
            link.pins += 1;
            drop(links);
            visit(serial);
            links = self.lock();
            next = links.at(place).next;
            links.at(place).pins -= 1;
            links.settle(place);
        }
    }
}

impl Links {
    fn at(&mut self, place: usize) -> &mut Link {
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }

    /// Keeps a link at a place that was not used before.
    fn extend(&mut self, link: Link) -> usize {
        let place = self.places;
        if place.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[place / CHUNK].push(link);
        self.places += 1;
        place
    }

    fn add(&mut self) -> usize {
        self.born += 1;
        let link = Link {
            serial: self.born,
            before: None,
            next: self.first,
            pins: 0,
            gone: false,
        };
        let place = match self.free {
            None => self.extend(link),
            Some(place) => {
                self.free = self.at(place).next;
                *self.at(place) = link;
                place
            }
        };
        if let Some(second) = self.first.replace(place) {
            self.at(second).before = Some(place);
        }
        place
    }

    /// Takes a link off that is gone and not pinned any more.
    fn settle(&mut self, place: usize) {
        let link = self.at(place);
        if !link.gone || link.pins > 0 {
            return;
        }
        let (before, next) = (link.before, link.next);
        match before {
            None => self.first = next,
            Some(before) => self.at(before).next = next,
        }
        if let Some(next) = next {
            self.at(next).before = before;
        }
        self.at(place).next = self.free;
        self.free = Some(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serials(list: &InodeList) -> Vec<u64> {
        let mut met = Vec::new();
        list.each(|serial| met.push(serial));
        met
    }

    #[test]
    fn the_list_holds_who_was_born_and_has_not_gone_in_reverse() {
        let list = InodeList::default();
        let places: Vec<usize> = (0..5).map(|_| list.add()).collect();
        assert_eq!(serials(&list), [5, 4, 3, 2, 1]);
        for place in [places[2], places[4], places[0]] {
            list.remove(place);
        }
        assert_eq!(serials(&list), [4, 2]);
        assert_eq!(list.add(), places[0], "places are used again");
        assert_eq!(serials(&list), [6, 4, 2]);
        for place in [places[3], places[1], places[0]] {
            list.remove(place);
        }
        assert!(serials(&list).is_empty());
    }

    #[test]
    fn who_goes_during_a_walk_is_neither_met_twice_nor_does_it_lose_the_way() {
        let list = InodeList::default();
        let places: Vec<usize> = (0..5).map(|_| list.add()).collect();
        let mut met = Vec::new();
        list.each(|serial| {
            met.push(serial);
            match serial {
                // The one it stands on, and the next one.
                4 => [places[3], places[2]].map(|place| list.remove(place)),
                // One it has passed; one born meanwhile comes before the first.
                1 => [places[4], list.add()].map(|place| list.remove(place)),
                _ => [(); 2],
            };
        });
        assert_eq!(met, [5, 4, 2, 1]);
        assert_eq!(serials(&list), [2, 1]);
    }

    #[test]
    fn every_session_meets_the_inodes_of_all() {
        let tree = ListedTree::new();
        let mut sessions = [tree.session(), tree.session()];
        sessions[0].make_dir(c"/d").expect("made");
        sessions[1].create(c"/d/one").expect("made");
        sessions[1].create(c"/d/two").expect("made");
        assert_eq!(sessions[0].iterate(0, 2, 1), Ok(3));
        assert_eq!(sessions[1].iterate(1, 2, 1), Ok(0));
        assert_eq!(sessions[1].create(c"/d/one"), Err(Errno::EEXIST));
        sessions[1].unlink(c"/d/one").expect("there");
        assert_eq!(sessions[0].iterate(0, 2, 1), Ok(2));
        sessions[1].unlink(c"/d/two").expect("there");
        sessions[0].remove_dir(c"/d").expect("empty");
        assert_eq!(sessions[1].iterate(0, 1, 1), Ok(0));
    }
}
