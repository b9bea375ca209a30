//! How a segment becomes two, mostly without a look at any of its names.
//!
//! A slot's tag begins with few bits that all of the segment's hashes have in common; the next is the one that
//! decides to which half an item goes. Where it lies is its home, if the bucket before was never passed over. So
//! only names that may lie behind their homes are hashed again, and all of them once in so many depths.

use super::{Bucket, Segment, TAG_STEP, tag_place};
use crate::catalog::item::Item;
use crate::catalog::slot::Word;

impl<'g> Segment<'g> {
    /// Puts all items into two new segments of the same size, for one more bit of the hash.
    pub(in crate::catalog) fn deal(self, [low, high]: [Self; 2], hash: impl Fn(&[u8]) -> u64) {
        let bit = u64::BITS - 1 - self.depth;
        // Tags of another part of the hash take the whole hash; so does the home of an item that may lie behind
        // it. Else the tag says to which half it goes, and where it lies is its home.
        let in_tag = tag_place(low.depth) == tag_place(self.depth);
        let tag_bit = u16::BITS - 1 - self.depth % TAG_STEP;
        let is_known = |at: usize| {
            let before = &self.buckets[at.wrapping_sub(1) & (self.buckets.len() - 1)];
            in_tag && !before.is_marked()
        };
        let unknown = (0..self.buckets.len()).filter(|&at| !is_known(at));
        unknown.for_each(|at| self.buckets[at].items().for_each(Item::fetch));
        for (at, bucket) in self.buckets.iter().enumerate() {
            if !is_known(at) {
                for item in bucket.items() {
                    let hash = hash(item.key());
                    let half = if hash >> bit & 1 == 1 { high } else { low };
                    half.put(hash, item);
                }
                continue;
            }
            // A new bucket is filled from the front.
            let homes = [low, high].map(|half| &half.buckets[at]);
            let mut used = homes.map(Bucket::used);
            for slot in &bucket.slots {
                let word = slot.load();
                if !word.is_item() {
                    continue;
                }
                let half = usize::from(word.tag() >> tag_bit & 1);
                match homes[half].slots.get(used[half]) {
                    Some(free) => {
                        free.store(word.unmarked());
                        used[half] += 1;
                    }
                    None => [low, high][half].put_beyond(at, word),
                }
            }
        }
    }

    /// Adds what a word of another segment with the same kind of tags leads to, whose home is this bucket, which
    /// is full.
    #[cold]
    fn put_beyond(self, home: usize, word: Word<'g>) {
        let len = self.buckets.len();
        let room = (0..len).find_map(|step| {
            let bucket = &self.buckets[(home + step) & (len - 1)];
            let room = bucket.free_slot();
            if room.is_none() {
                // Before the item is put behind it: see the invariants.
                bucket.mark();
            }
            room
        });
        let slot = room.expect("half of what had as much room");
        slot.store(word.unmarked());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::hash::NameHasher;
    use crate::catalog::item;
    use crate::catalog::segment::{allocate, free};
    use crate::catalog_primitive::{MODEL, SIZE_LOG_MAX};

    #[test]
    fn halves_are_searched_as_if_each_name_had_been_put_there() {
        if MODEL {
            // Too many steps.
            return;
        }
        let hasher = NameHasher::new();
        for depth in 0..20 {
            let size_log = depth % (SIZE_LOG_MAX + 1);
            let [whole, low, high] = [(); 3].map(|()| allocate(size_log));
            // SAFETY: made above, freed at the end.
            let segment = unsafe { Segment::from_raw(whole, size_log, depth) };
            // SAFETY: as above.
            let halves =
                [low, high].map(|half| unsafe { Segment::from_raw(half, size_log, depth + 1) });
            let mut items = Vec::new();
            loop {
                let name = format!("name-{depth}-{}", items.len());
                let hash = hasher.hash(name.as_bytes());
                let number = items.len() as u64 + 1;
                let made = item::allocate(name.as_bytes(), number, number, 0);
                items.push((name, hash, made));
                // SAFETY: made just now, freed at the end.
                if !segment.put_near(hash, unsafe { Item::from_raw(made) }) {
                    break;
                }
            }
            segment.deal(halves, |key| hasher.hash(key));
            let left_over = items.len() - 1;
            for (at, (name, hash, _)) in items.iter().enumerate() {
                let is_high = hash << depth >> (u64::BITS - 1) == 1;
                for (half, is_home) in [(halves[0], !is_high), (halves[1], is_high)] {
                    let found = half.get(*hash, name.as_bytes()).map(Item::order);
                    let there = is_home && at < left_over;
                    assert_eq!(found, there.then_some(at as u64 + 1), "{name}");
                }
            }
            for (_, _, made) in items {
                // SAFETY: allocated above, used no more.
                unsafe { item::free(made) };
            }
            for first in [whole, low, high] {
                // SAFETY: as above.
                unsafe { free(first, size_log) };
            }
        }
    }
}
