//! A filter of the names of a directory, without false negatives: it proves most absent names to be
//! absent.
//!
//! It is a list of blocked Bloom filters, each probed in one cache line per name. When the last one
//! holds as many names as it was sized for, another is added. Removed names remain in it; when
//! there are many, the filter is dropped and rebuilt. It is filled from the catalog, or run by run
//! from the store, and excludes nothing before it is complete.

use foldhash::fast::RandomState;
use std::hash::BuildHasher as _;

/// Bits per name.
const BITS: u64 = 10;
/// Bits of a block, and how many of them a name sets.
const BLOCK: u64 = 512;
const PROBES: u32 = 6;
/// Names that a part is sized for, at least.
const ROOM_MIN: u64 = 4096;
/// The filter is rebuilt after this many removals, and at least this fraction of the names.
const GONE_MIN: u64 = 4096;
const GONE_PART: u64 = 4;

type Block = [u64; (BLOCK / 64) as usize];

/// The parts, the newest last.
#[derive(Default)]
pub(super) struct Filter {
    parts: Vec<Part>,
    hasher: RandomState,
    /// Names with cookies above this one are not in the filter yet; `None`: the filter is complete.
    missing_behind: Option<u64>,
    gone: u64,
}

struct Part {
    blocks: Box<[Block]>,
    room: u64,
    names: u64,
}

impl Part {
    fn new(room: u64) -> Self {
        let blocks = (room * BITS).div_ceil(BLOCK);
        Self {
            blocks: (0..blocks).map(|_| Block::default()).collect(),
            room,
            names: 0,
        }
    }

    /// The index of the block of a hash.
    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.blocks.len() as u128) >> 64) as usize
    }
}

/// The bits of a hash in its block, as words and masks.
fn bits(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    // The upper bits of the hash select the block.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    (0..PROBES).map(move |probe| {
        let bit = (mixed >> (probe * BLOCK.ilog2())) % BLOCK;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

impl Filter {
    /// An empty filter for a directory of this many names.
    pub(super) fn new(names: u64) -> Self {
        Self {
            parts: vec![Part::new(names.max(ROOM_MIN))],
            missing_behind: Some(0),
            ..Self::default()
        }
    }

    /// Adds a name.
    pub(super) fn add(&mut self, name: &[u8]) {
        let hash = self.hasher.hash_one(name);
        if self.parts.last().is_none_or(|part| part.names >= part.room) {
            let names: u64 = self.parts.iter().map(|part| part.room).sum();
            self.parts.push(Part::new((names / 2).max(ROOM_MIN)));
        }
        if let Some(part) = self.parts.last_mut() {
            part.names += 1;
            let place = part.place(hash);
            for (word, mask) in bits(hash) {
                part.blocks[place][word] |= mask;
            }
        }
    }

    /// Counts a removed name; `names` are left. False: the filter has to be rebuilt.
    pub(super) fn remove(&mut self, names: u64) -> bool {
        self.gone += 1;
        self.gone <= GONE_MIN.max(names / GONE_PART)
    }

    /// Is the name certainly absent?
    pub(super) fn excludes(&self, name: &[u8]) -> bool {
        if self.missing_behind.is_some() {
            return false;
        }
        let hash = self.hasher.hash_one(name);
        self.parts.iter().all(|part| {
            let block = &part.blocks[part.place(hash)];
            bits(hash).any(|(word, mask)| block[word] & mask == 0)
        })
    }

    /// The cookie behind which names are missing in the filter; `None`: complete.
    pub(super) fn missing_behind(&self) -> Option<u64> {
        self.missing_behind
    }

    /// Notes that all names up to this cookie were added; `None`: all names.
    pub(super) fn reaches(&mut self, cookie: Option<u64>) {
        self.missing_behind = cookie;
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let blocks = self.parts.iter().map(|part| part.blocks.len());
        blocks.sum::<usize>() * size_of::<Block>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Vec<u8> {
        format!("name-{number}").into_bytes()
    }

    #[test]
    fn no_name_that_is_there_is_excluded_and_few_others_are_not() {
        let mut filter = Filter::new(10_000);
        for number in 0..50_000 {
            filter.add(&name(number));
        }
        assert!(!filter.excludes(b"it is not complete"));
        filter.reaches(None);
        assert!((0..50_000).all(|number| !filter.excludes(&name(number))));
        let strangers = 100_000..200_000;
        let taken = strangers.filter(|&number| !filter.excludes(&name(number)));
        let taken = taken.count();
        // A false-positive rate of at most one percent in each of the five parts, and a margin.
        assert!(taken < 10_000, "{taken} of 100,000 strangers");
        assert!(filter.bytes() * 8 < 50_000 * 20, "{} bytes", filter.bytes());
    }

    #[test]
    fn it_is_made_anew_when_a_part_of_the_names_went() {
        let mut filter = Filter::new(100_000);
        let mut left = 100_000;
        while filter.remove(left) {
            left -= 1;
        }
        assert!((79_000..81_000).contains(&left), "{left}");
        let mut filter = Filter::new(10);
        assert_eq!((0..9999).take_while(|_| filter.remove(0)).count(), 4096);
    }
}
