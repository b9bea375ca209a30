//! Ghosts: objects that were recently evicted from probation. An object that is loaded again soon
//! enters the main set at once.
//!
//! A table of fingerprints, each with the time of its eviction, which counts evicted objects. A
//! number has the slots of one bucket; the oldest one there is replaced. After a collision an
//! object stays longer than it should, once.

use crate::types::Ino;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use holdfast_sync::ShardedCounter;
use once_cell::race::OnceBox;

/// Bits of the time.
const AGE_BITS: u32 = 12;
const AGE_MASK: u32 = (1 << AGE_BITS) - 1;
/// Units of time in which as many objects are evicted as fit into memory.
const AGES: u64 = 512;
/// Slots of a bucket: a cache line.
const BUCKET: usize = 16;
/// Buckets: at least, and at most.
const BUCKETS: (u64, u64) = (1 << 6, 1 << 20);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([AtomicU32; BUCKET]);

/// The table; allocated at the first eviction.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    table: OnceBox<Table>,
    /// The number of evicted objects.
    gone: AtomicU64,
    /// How often an object was loaded again that would still have been in memory.
    pub(crate) refaults: ShardedCounter,
}

#[derive(Debug)]
struct Table {
    buckets: Box<[Bucket]>,
    /// The evictions of one unit of time.
    unit: u64,
}

impl Table {
    fn of(capacity: u64) -> Self {
        let count = (capacity / BUCKET as u64).clamp(BUCKETS.0, BUCKETS.1);
        Self {
            buckets: (0..count).map(|_| Bucket::default()).collect(),
            unit: (capacity / AGES).max(1),
        }
    }

    /// The bucket of a number, and its fingerprint, which is not zero.
    fn bucket(&self, number: u64) -> (&Bucket, u32) {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (u128::from(mixed) * self.buckets.len() as u128) >> 64;
        // Numbers of one bucket differ in the upper bits.
        let print = (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 44) as u32;
        (&self.buckets[at as usize], print.max(1))
    }

    /// The current time.
    fn age(&self, gone: u64) -> u32 {
        (gone / self.unit) as u32 & AGE_MASK
    }
}

/// The age of a slot. An empty slot is infinitely old.
fn since(place: u32, now: u32) -> u32 {
    match place {
        0 => u32::MAX,
        noted => now.wrapping_sub(noted) & AGE_MASK,
    }
}

impl Ghosts {
    /// An object of this size was evicted; `capacity` is the size of all objects that fit into
    /// memory.
    pub(crate) fn note(&self, number: u64, size: u64, capacity: u64) {
        let table = (self.table).get_or_init(|| Box::new(Table::of(capacity)));
        let now = table.age(self.gone.fetch_add(size, Relaxed));
        let (bucket, print) = table.bucket(number);
        let oldest = (bucket.0.iter()).max_by_key(|place| since(place.load(Relaxed), now));
        if let Some(place) = oldest {
            place.store(print << AGE_BITS | now, Relaxed);
        }
    }

    /// Would this object still be in memory if it had been in the main set, which holds `there`?
    /// Such a refault is returned once, and counted.
    pub(crate) fn take(&self, number: u64, there: u64) -> bool {
        let is_refault = self.recall(number, there);
        if is_refault {
            self.refaults.add(1);
        }
        is_refault
    }

    /// Like [`take`](Self::take), without counting.
    pub(crate) fn recall(&self, number: u64, there: u64) -> bool {
        let Some(table) = self.table.get() else {
            return false;
        };
        let (bucket, print) = table.bucket(number);
        let is_it = |place: &&AtomicU32| place.load(Relaxed) >> AGE_BITS == print;
        let Some(place) = bucket.0.iter().find(is_it) else {
            return false;
        };
        let now = table.age(self.gone.load(Relaxed));
        let passed = u64::from(since(place.swap(0, Relaxed), now));
        passed.saturating_mul(table.unit) <= there
    }

    /// Memory of the table.
    pub(crate) fn bytes(&self) -> u64 {
        let buckets = self.table.get().map_or(0, |table| table.buckets.len());
        (buckets * size_of::<Bucket>()) as u64
    }
}

/// The key of an evicted page; a page of another file may rarely have the same.
pub(crate) fn page_key(ino: Ino, page: u64) -> u64 {
    ino.0.rotate_left(u64::BITS / 2) ^ !page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_lately_is_known_once_and_what_went_long_ago_is_not() {
        let ghosts = Ghosts::default();
        assert!(!ghosts.take(7, 1000));
        assert_eq!(ghosts.bytes(), 0);
        for number in 0..1000 {
            ghosts.note(number, 1, 1024);
        }
        assert_eq!(ghosts.bytes(), 4096);
        let known = |numbers: std::ops::Range<u64>, there| {
            numbers.filter(|&number| ghosts.take(number, there)).count()
        };
        assert_eq!(known(0..100, 100), 0, "more went since than there is");
        let of = known(100..1000, 1000);
        assert!(of > 800, "{of} of 900 in 1,024 places");
        assert_eq!(known(0..1000, 1000), 0, "each once");
        assert_eq!(ghosts.refaults.sum(), of as i64);
        ghosts.note(5, 1, 1024);
        for number in 10_000..11_500 {
            ghosts.note(number, 1, 1024);
        }
        assert!(!ghosts.take(5, 1024));
        let strange = known(1 << 40..(1 << 40) + 1000, u64::MAX);
        assert!(strange < 20, "{strange} strangers are known");
    }

    #[test]
    fn time_goes_by_what_went_however_many_that_were() {
        let ghosts = Ghosts::default();
        ghosts.note(1, 1, 1 << 20);
        ghosts.note(2, 1 << 19, 1 << 20);
        assert!(!ghosts.take(1, 1 << 18), "half a million pages went since");
        ghosts.note(1, 1, 1 << 20);
        ghosts.note(2, 1 << 17, 1 << 20);
        assert!(ghosts.take(1, 1 << 18));
    }
}
