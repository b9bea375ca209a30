//! The memory that an index takes, and that it gives back. One test: the bytes are counted for the
//! whole process.
#![expect(unsafe_code, reason = "an allocator that counts")]

use holdfast_dirindex::DirIndex;
use holdfast_sync::epoch;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize, sign: i64) {
    BYTES.fetch_add(sign * bytes as i64, Ordering::Relaxed);
}

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(memory, layout) };
    }
}

/// Bytes in use when all garbage is freed.
fn bytes() -> i64 {
    for _ in 0..3 {
        epoch::synchronize();
    }
    BYTES.load(Ordering::Relaxed)
}

/// A name of 24 bytes.
fn name(number: u64) -> Vec<u8> {
    format!("a-name-of-24-{number:011}").into_bytes()
}

fn fill(index: &DirIndex, count: u64) {
    let mut writer = index.lock();
    let first = writer.last_order() + 1;
    for number in 0..count {
        writer
            .insert(&name(number), first + number, number, 1)
            .unwrap();
    }
}

/// What the epochs keep for themselves, once they have been used.
const SLACK: i64 = 16 << 10;

/// Names that are added and removed leave no more behind than the remaining ones need.
fn names_come_and_go(before: i64) {
    for left in 1000..1016 {
        let index = DirIndex::new();
        fill(&index, left);
        let mut writer = index.lock();
        for number in left..left + 50_000 {
            let order = writer.last_order() + 1;
            writer.insert(&name(number), order, number, 1).unwrap();
            assert!(writer.remove(&name(number - left)).is_some());
        }
        drop(writer);
        let taken = bytes() - before;
        let most = left as i64 * (48 + 32 + 32) + SLACK;
        assert!(
            taken <= most,
            "{left} names that were others before take {taken} bytes, not {most}"
        );
    }
}

#[test]
fn names_cost_what_was_promised_and_nothing_when_they_are_gone() {
    // The hash's seed, the epochs' lists.
    let first = DirIndex::new();
    fill(&first, 5000);
    first.lock().clear();
    let before = bytes();

    for count in [0, 1, 3, 7, 15, 31, 32, 100, 1000, 3000, 100_000] {
        let index = DirIndex::new();
        fill(&index, count);
        let taken = bytes() - before;
        let most = match count {
            0 => 0,
            // Items of 48 bytes, and a row of 3, 7, 15 or 31 slots and a header.
            1..=31 => 48 * count as i64 + ((count + 1).next_power_of_two().max(4) * 8) as i64,
            // 16 slots of a table for the worst of them, and a row half full.
            32..1000 => count as i64 * (48 + 32 + 16),
            _ => count as i64 * (48 + 18 + 12),
        };
        assert!(
            taken <= most,
            "{count} names take {taken} bytes, not {most}"
        );

        // All but a few go, in the order of the listing or against it: the rest is small again.
        let left = count.min(10);
        let mut writer = index.lock();
        let mut going: Vec<u64> = (left..count).collect();
        if count % 2 == 0 {
            going.reverse();
        }
        for number in going {
            assert!(writer.remove(&name(number)).is_some());
        }
        drop(writer);
        let taken = bytes() - before;
        let most = left as i64 * (48 + 4 * 8) + 8 * 8 + SLACK;
        assert!(taken <= most, "{left} names of {count} keep {taken} bytes");
        for number in 0..left {
            assert!(index.lock().remove(&name(number)).is_some());
        }
        assert!(index.is_empty());
        assert!(bytes() - before <= SLACK, "nothing is left");
        drop(index);
    }

    names_come_and_go(before);

    for step in 0..50 {
        let index = DirIndex::new();
        fill(&index, 20 * step);
        let mut writer = index.lock();
        match step % 4 {
            0 => writer.clear(),
            1 => writer.adopt(DirIndex::new()),
            2 => {
                for number in 0..20 * step {
                    let to = name(number + 1_000_000);
                    assert!(writer.rename(&name(number), &to).is_some());
                }
            }
            _ => {}
        }
        drop(writer);
    }
    assert!(bytes() - before <= SLACK, "nothing leaks");
}
