//! How tables grow: a table is built at once for a row, then its segments double or split.
//!
//! *Invariants.* A segment's items are in the new ones before an entry leads there. The old one is
//! retired when no entry leads to it any more.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::item::Item;
use super::row::RowHead;
use super::segment::{self, Segment};
use super::table::{self, Entry, Lead, Table, TableHead};
use crate::primitive::{BUCKET_SLOTS, Ordering, SIZE_LOG_MAX};
use std::ptr::NonNull;

/// Names per segment of a table that is built at once: five of eight slots.
const NAMES_PER_SEGMENT: usize = (BUCKET_SLOTS << SIZE_LOG_MAX) * 5 / 8;
/// Entries may outnumber what the names need by this power of two; beyond it full segments double
/// instead of being split. Random hashes do not get there.
const DEPTH_SLACK: u32 = 5;

/// The number to give to [`build`] for a table of `names` names that is as dense as one that grew.
pub(super) fn dense(names: usize) -> usize {
    names * 5 / 6
}

/// Makes a table for `names` names and one more.
pub(super) fn build<'g>(
    row: NonNull<RowHead>,
    names: usize,
    items: impl Iterator<Item = Item<'g>>,
) -> NonNull<TableHead> {
    let names = names + 1;
    let (depth, size_log) = if names <= NAMES_PER_SEGMENT {
        (
            0,
            names.div_ceil(BUCKET_SLOTS / 2).next_power_of_two().ilog2(),
        )
    } else {
        let segments = names.div_ceil(NAMES_PER_SEGMENT).next_power_of_two();
        (segments.ilog2(), SIZE_LOG_MAX)
    };
    let size_log = size_log.min(SIZE_LOG_MAX);
    let mut head = table::allocate(row, depth, 1 << (depth + size_log), |_| Lead {
        first: segment::allocate(size_log),
        depth,
        size_log,
    });
    for item in items {
        // SAFETY: made above, and not shared yet.
        let mut table: Table<'g> = unsafe { Table::from_raw(head) };
        let hash = table.hash(item.key());
        while !table.make_room(hash, names) {
            let doubled = table.doubled();
            // SAFETY: no other thread knows it, and its segments are the new one's.
            unsafe { table::free(head) };
            head = doubled;
            // SAFETY: as above.
            table = unsafe { Table::from_raw(head) };
        }
        table.put(hash, item);
    }
    head
}

/// The segment of an entry.
///
/// # Safety
/// As for [`Segment::from_raw`].
unsafe fn lead_to<'g>(lead: Lead) -> Segment<'g> {
    // SAFETY: the caller's promise.
    unsafe { Segment::from_raw(lead.first, lead.size_log) }
}

impl<'g> Table<'g> {
    /// Makes room for one more name of this hash in a table of `names` names. `false`: the table
    /// must be [`doubled`](Self::doubled) first.
    pub(super) fn make_room(self, hash: u64, names: usize) -> bool {
        loop {
            let (lead, segment) = self.segment(hash);
            if segment.has_room_near(hash) {
                return true;
            }
            let depth_max = (names / NAMES_PER_SEGMENT + 1).ilog2() + DEPTH_SLACK;
            if lead.size_log < SIZE_LOG_MAX {
                self.regrow(hash, lead, segment);
            } else if lead.depth < depth_max {
                if lead.depth == self.head.depth {
                    return false;
                }
                self.split(hash, lead, segment);
            } else if segment.has_room() {
                return true;
            } else {
                self.regrow(hash, lead, segment);
            }
        }
    }

    /// A table with twice the entries, for the same segments and the same row.
    pub(super) fn doubled(self) -> NonNull<TableHead> {
        table::allocate(
            self.row_head(),
            self.head.depth + 1,
            self.buckets(),
            |index| self.entries[index / 2].load(),
        )
    }

    /// Is there room for `names` names in all, in the table and in its row?
    pub(super) fn has_room_for(self, names: usize) -> bool {
        self.row().capacity() >= names && self.buckets() * BUCKET_SLOTS * 3 / 4 >= names
    }

    /// Is the table much too large for `names` names?
    pub(super) fn is_wasteful(self, names: usize) -> bool {
        self.buckets() * BUCKET_SLOTS > 6 * names
    }

    /// Replaces a segment by one of twice the size.
    fn regrow(self, hash: u64, lead: Lead, segment: Segment<'g>) {
        let grown = Lead {
            first: segment::allocate(lead.size_log + 1),
            size_log: lead.size_log + 1,
            ..lead
        };
        // SAFETY: made above; its items are the old one's.
        let new: Segment<'_> = unsafe { lead_to(grown) };
        for item in segment.prefetched_items() {
            new.put(self.hash(item.key()), item);
        }
        self.entries_of(hash, lead.depth)
            .iter()
            .for_each(|entry| entry.store(grown));
        self.retire_old(lead, 1 << lead.size_log);
    }

    /// Replaces a segment by two, for one more bit of the hash.
    fn split(self, hash: u64, lead: Lead, segment: Segment<'g>) {
        let [low, high] = [(); 2].map(|()| Lead {
            first: segment::allocate(lead.size_log),
            depth: lead.depth + 1,
            size_log: lead.size_log,
        });
        // SAFETY: made above; their items are the old one's.
        let halves: [Segment<'_>; 2] = [low, high].map(|half| unsafe { lead_to(half) });
        let bit = u64::BITS - 1 - lead.depth;
        for item in segment.prefetched_items() {
            let hash = self.hash(item.key());
            halves[(hash >> bit & 1) as usize].put(hash, item);
        }
        let entries = self.entries_of(hash, lead.depth);
        let (lows, highs) = entries.split_at(entries.len() / 2);
        lows.iter().for_each(|entry| entry.store(low));
        highs.iter().for_each(|entry| entry.store(high));
        self.retire_old(lead, 1 << lead.size_log);
    }

    /// The entries that lead to the segment of this hash, which has this depth.
    fn entries_of(self, hash: u64, depth: u32) -> &'g [Entry] {
        let count = 1_usize << (self.head.depth - depth);
        let first = self.index(hash) & !(count - 1);
        &self.entries[first..first + count]
    }

    /// Counts `more` buckets, and retires a segment that no entry leads to any more.
    fn retire_old(self, old: Lead, more: usize) {
        self.head
            .buckets
            .store((self.buckets() + more) as u64, Ordering::Relaxed);
        // SAFETY: no entry leads there, and the caller holds the index's lock, so it is retired
        // once.
        unsafe { segment::retire(old.first, old.size_log) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch;
    use crate::index::DirIndex;
    use crate::index::body::View;
    use crate::index::hash::NameHasher;
    use crate::index::item::Item;
    use crate::primitive::MODEL;

    /// Names with hashes that begin with the same ten bits.
    fn colliding_names(count: usize) -> Vec<String> {
        let hasher = NameHasher::new();
        (0..)
            .map(|number| format!("name-{number}"))
            .filter(|name| hasher.hash(name.as_bytes()) >> (u64::BITS - 10) == 0)
            .take(count)
            .collect()
    }

    #[test]
    fn names_whose_hashes_collide_take_longer_but_not_for_ever() {
        if MODEL {
            // Too many steps.
            return;
        }
        let names = colliding_names(400);
        let index = DirIndex::new();
        for (number, name) in (1..).zip(&names) {
            let done = index.lock().insert(name.as_bytes(), number, number, 0);
            assert_eq!(done, Ok(()));
        }
        let guard = epoch::pin();
        for (number, name) in (1..).zip(&names) {
            let item = index.get(name.as_bytes(), &guard);
            assert_eq!(item.map(Item::value), Some(number), "{name}");
        }
        assert!(index.get(b"name-", &guard).is_none());
        let View::Big(table) = index.view(&guard) else {
            panic!("so many names have a table");
        };
        assert!(table.head.depth <= 7, "splitting would not have ended");
        assert!(table.buckets() * BUCKET_SLOTS <= 8 * names.len());
        for name in &names {
            assert!(index.lock().remove(name.as_bytes()).is_some());
        }
        assert!(index.is_empty());
    }
}
