//! Memory of the raw uses of evicted objects. One test: the bytes are counted for the whole
//! process.
#![expect(unsafe_code, reason = "an allocator that counts")]

use holdfast_sync::{EvictedUses, Index, Prepared, epoch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize, sign: i64) {
    BYTES.fetch_add(sign * bytes as i64, Ordering::Relaxed);
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(memory, layout) };
    }
}

const OBJECTS: u64 = 200_000;

/// Bytes for each evicted object with `uses` raw uses, for objects with these keys: where the table
/// is fullest, and where it is emptiest. The index's own figure must be what the allocator counts.
fn bytes_each(uses: u64, key: impl Fn(u64) -> u64) -> (f64, f64) {
    let index = Index::<()>::new();
    let evicted_uses = EvictedUses::new();
    let before = BYTES.load(Ordering::Relaxed);
    let (mut least, mut most, mut told) = (f64::MAX, 0.0_f64, 0);
    for number in 0..OBJECTS {
        let object = Prepared::new(()).with_raw_uses(uses);
        let held = index.publish_prepared(key(number), object).expect("new");
        let freeing = {
            let guard = epoch::pin();
            let key = held.key();
            drop(held);
            let held = index.peek(key, &guard).expect("just published");
            index.begin_evict_though_held(held).expect("no reference")
        };
        let mut locked = evicted_uses.lock();
        locked.free(&index, freeing);
        told = locked.runs().bytes();
        if number >= OBJECTS / 2 {
            let each = told as f64 / (number + 1) as f64;
            (least, most) = (least.min(each), most.max(each));
        }
    }
    assert_eq!(evicted_uses.lock().runs().keys(), OBJECTS);
    index.trim();
    for _ in 0..6 {
        epoch::synchronize();
    }
    let counted = BYTES.load(Ordering::Relaxed) - before;
    // A few leaves of the index remain, and what each core keeps.
    let beside = counted - told.cast_signed();
    assert!((0..64 << 10).contains(&beside), "{counted}, {told} told");
    (least, most)
}

#[test]
fn an_object_that_is_away_takes_a_byte_or_two_where_they_are_dense_and_a_line_alone() {
    // Held once, and again; dense, four of each run, and one.
    for (uses, apart, bound) in [(1, 1, 0.9), (2, 1, 1.9), (1, 16, 14.4), (1, 64, 57.2)] {
        let (least, most) = bytes_each(uses, |number| number * apart);
        eprintln!("{uses} uses, every {apart}th: {least:.2} to {most:.2} bytes");
        assert!(
            most <= bound,
            "{most} bytes of {uses} uses, every {apart}th"
        );
    }
}
