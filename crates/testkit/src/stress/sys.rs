//! An allocator that counts what is alive, round another one.
//!
//! What the process holds from its allocator tells whether something leaks; what is resident does
//! not, because allocators keep what they once had.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Places to count at, so that threads rarely meet at one.
const PLACES: usize = 64;
const NONE: usize = usize::MAX;

/// What the threads of this slot allocated, less what they freed. Negative if they free blocks of
/// other threads.
#[repr(align(128))]
struct Place {
    bytes: AtomicI64,
    blocks: AtomicI64,
}

static COUNTS: [Place; PLACES] = [const {
    Place {
        bytes: AtomicI64::new(0),
        blocks: AtomicI64::new(0),
    }
}; PLACES];
static DEALT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Without a destructor and with a constant start: it can be used from the first allocation of
    // a thread to the last.
    static MINE: Cell<usize> = const { Cell::new(NONE) };
}

fn note(bytes: i64, blocks: i64) {
    let mut mine = MINE.get();
    if mine == NONE {
        mine = DEALT.fetch_add(1, Relaxed) % PLACES;
        MINE.set(mine);
    }
    COUNTS[mine].bytes.fetch_add(bytes, Relaxed);
    COUNTS[mine].blocks.fetch_add(blocks, Relaxed);
}

fn size(bytes: usize) -> i64 {
    // No block is larger than `isize::MAX`.
    bytes.cast_signed() as i64
}

/// What the process holds from its allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Bytes as they were asked for.
    pub bytes: i64,
    /// Blocks.
    pub blocks: i64,
}

/// What is allocated; `None` if [`Counting`] is not the process's allocator. A sum over threads:
/// exact only while no thread allocates.
#[must_use]
pub fn live() -> Option<Live> {
    // A caller of this function has allocated before.
    (DEALT.load(Relaxed) > 0).then(|| {
        COUNTS.iter().fold(Live::default(), |sum, place| Live {
            bytes: sum.bytes + place.bytes.load(Relaxed),
            blocks: sum.blocks + place.blocks.load(Relaxed),
        })
    })
}

/// Counts what `A` gives out. To be the `#[global_allocator]` of a program that runs the stress
/// test.
#[derive(Debug)]
pub struct Counting<A>(pub A);

// SAFETY: all is left to `A`; counting touches atomics and a thread-local without a destructor, so
// it neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            note(size(layout.size()), 1);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            note(size(layout.size()), 1);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-size(layout.size()), -1);
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let moved = unsafe { self.0.realloc(block, layout, new_size) };
        if !moved.is_null() {
            note(size(new_size) - size(layout.size()), 0);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    fn what_one_thread_allocates_and_another_frees_is_counted_once() {
        let before = live().unwrap_or_default();
        let layout = Layout::from_size_align(1000, 8).unwrap();
        // SAFETY: the layout is not empty.
        let block = unsafe { Counting(System).alloc(layout) };
        // SAFETY: made above with this layout.
        let block = unsafe { Counting(System).realloc(block, layout, 3000) };
        let kept = live().unwrap();
        let (bytes, blocks) = (kept.bytes - before.bytes, kept.blocks - before.blocks);
        assert_eq!((bytes, blocks), (3000, 1));
        let address = block.expose_provenance();
        let freeing = std::thread::spawn(move || {
            let block = std::ptr::with_exposed_provenance_mut(address);
            let layout = Layout::from_size_align(3000, 8).unwrap();
            // SAFETY: `block` was allocated above and has this size now; no other reference to it
            // exists.
            unsafe { Counting(System).dealloc(block, layout) };
        });
        freeing.join().unwrap();
        assert_eq!(live().unwrap(), before);
    }
}
