//! A chunk: some neighbours among the names of a directory.

use std::collections::VecDeque;
use std::ptr;

use holdfast_sync::prefetch_to_fill;
use holdfast_types::{FileType, Ino};

use super::Name;

/// Names of a chunk.
const CHUNK: usize = 128;
/// Bytes of names that went, which a chunk may keep in any case.
const IDLE_MAX: usize = 1024;
/// Bytes behind the last name that are fetched for the next.
const AHEAD: usize = 128;

/// Some names, by their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    /// Names mostly come at the end and go from the beginning.
    pub(super) slots: VecDeque<Slot>,
    bytes: Vec<u8>,
    /// How many bytes belong to names that went.
    idle: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) cookie: u64,
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

    pub(super) fn place(&self, cookie: u64) -> Result<usize, usize> {
        match (self.slots.front(), self.slots.back()) {
            (Some(first), _) if first.cookie == cookie => Ok(0),
            (_, Some(last)) if last.cookie < cookie => Err(self.slots.len()),
            _ => self.slots.binary_search_by_key(&cookie, |slot| slot.cookie),
        }
    }

    pub(super) fn put(&mut self, cookie: u64, name: Name<'_>) -> bool {
        let slot = Slot {
            cookie,
            ino: name.ino,
            at: self.bytes.len() as u32,
            // Names have at most 255 bytes.
            len: name.bytes.len() as u16,
            kind: name.kind,
        };
        self.bytes.extend_from_slice(name.bytes);
        prefetch_to_fill(self.bytes.as_ptr_range().end, AHEAD);
        match self.place(cookie) {
            Ok(place) => {
                let before = std::mem::replace(&mut self.slots[place], slot);
                self.lost(before.len);
                false
            }
            Err(place) => {
                if place == self.slots.len() {
                    self.slots.push_back(slot);
                    if let Some(last) = self.slots.back() {
                        prefetch_to_fill(ptr::from_ref(last).wrapping_add(1), AHEAD);
                    }
                } else {
                    self.slots.insert(place, slot);
                }
                true
            }
        }
    }

    /// An empty one, with room for as much as this one has.
    pub(super) fn of_this_size(&self) -> Self {
        Self {
            slots: VecDeque::with_capacity(CHUNK),
            bytes: Vec::with_capacity(self.bytes.len()),
            idle: 0,
        }
    }

    /// Has a place between its names, or in their stead, and too many names for another?
    pub(super) fn must_be_split(&self, cookie: u64) -> bool {
        self.slots.len() >= CHUNK && matches!(self.place(cookie), Err(place) if place < CHUNK)
    }

    /// Can a name be put there, without more names than there may be?
    pub(super) fn takes(&self, cookie: u64) -> bool {
        self.slots.len() < CHUNK || self.place(cookie).is_ok()
    }

    /// Takes the upper half out; also tells the least place in it.
    pub(super) fn split(&mut self) -> (u64, Self) {
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
    pub(super) fn take(&mut self, cookie: u64) -> Option<()> {
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
    pub(super) fn reaches(&self, cookie: u64) -> bool {
        self.slots.back().is_some_and(|last| last.cookie >= cookie)
    }

    /// Bytes of memory, its own not included.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.bytes.capacity()
    }

    /// Bytes of the names.
    pub(super) fn name_bytes(&self) -> usize {
        self.bytes.len()
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

impl Slot {
    pub(super) fn named<'n>(&self, chunk: &'n Chunk) -> Name<'n> {
        Name {
            bytes: chunk.name(self),
            ino: self.ino,
            kind: self.kind,
        }
    }
}
