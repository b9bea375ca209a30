//! A counting allocator.
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rounded up to 16 bytes, as allocators do.
fn count(bytes: usize, sign: i64) {
    BYTES.fetch_add(sign * bytes.next_multiple_of(16) as i64, Ordering::Relaxed);
}

// SAFETY: forwards everything to the system's allocator.
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

/// Bytes allocated and not freed.
pub(crate) fn allocated() -> i64 {
    BYTES.load(Ordering::Relaxed)
}
