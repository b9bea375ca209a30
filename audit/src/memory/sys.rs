//! The C library's allocator, which notes the call stack of each allocation.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

use super::{CALLS, Calls, origins};

/// Changes that one recording can hold back.
const MISSED: usize = 128;

thread_local! {
    /// How deep the thread is in the allocator.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The thread records: then nothing may be noted, for that would be recorded as well.
    static SILENT: Cell<bool> = const { Cell::new(false) };
    /// What happened meanwhile: address and size, which is 0 for what was freed.
    static HELD_BACK: [Cell<(u64, usize)>; MISSED] = const { [const { Cell::new((0, 0)) }; MISSED] };
    static HELD_BACK_COUNT: Cell<usize> = const { Cell::new(0) };
}

/// The allocator of this program: the one of most users' programs, watched.
struct Watched;

#[global_allocator]
static WATCHED: Watched = Watched;

/// Is the calling thread in the allocator?
pub(super) fn is_allocating() -> bool {
    DEPTH.get() > 0
}

/// From now on nothing is noted.
pub(super) fn silence() {
    HELD_BACK_COUNT.set(0);
    SILENT.set(true);
}

/// Notes what happened since [`silence`], and from now on at once.
pub(super) fn speak() {
    SILENT.set(false);
    let count = HELD_BACK_COUNT.get();
    HELD_BACK.with(|held_back| {
        for (address, size) in held_back.iter().take(count).map(Cell::get) {
            if size == 0 {
                origins::remove(address);
            } else {
                origins::add(address, size, [0; CALLS]);
            }
        }
    });
}

fn hold_back(address: u64, size: usize) {
    let count = HELD_BACK_COUNT.get();
    HELD_BACK.with(|held_back| {
        if let Some(place) = held_back.get(count) {
            place.set((address, size));
            HELD_BACK_COUNT.set(count + 1);
        }
    });
}

/// The addresses to return to, innermost first.
fn calls() -> Calls {
    let mut buffer = [std::ptr::null_mut(); CALLS];
    // SAFETY: the buffer holds as many pointers as it is said to.
    let found = unsafe { libc::backtrace(buffer.as_mut_ptr(), CALLS as i32) };
    let mut calls = [0; CALLS];
    for (call, address) in calls.iter_mut().zip(&buffer[..found.max(0) as usize]) {
        *call = *address as u64;
    }
    calls
}

/// Runs `work` as the allocator's.
fn inside<T>(work: impl FnOnce() -> T) -> T {
    let depth = DEPTH.replace(DEPTH.get() + 1);
    // The signal handler of this thread reads `DEPTH`. Without the fence the compiler, which knows
    // `malloc`, may drop the store as unobserved.
    compiler_fence(Ordering::SeqCst);
    let done = work();
    compiler_fence(Ordering::SeqCst);
    DEPTH.set(depth);
    done
}

/// Runs `code`, which looks at the notes and must not add any.
pub(super) fn unnoted<T>(code: impl FnOnce() -> T) -> T {
    inside(code)
}

/// To be noted? Not what the notes themselves need, nor what the allocator asks itself.
fn noted() -> bool {
    DEPTH.get() == 0 && origins::wanted()
}

fn made(address: *mut u8, size: usize) {
    if !noted() {
        return;
    }
    if SILENT.get() {
        inside(|| hold_back(address as u64, size));
    } else {
        inside(|| origins::add(address as u64, size, calls()));
    }
}

fn freed(address: *mut u8) {
    if !noted() {
        return;
    }
    if SILENT.get() {
        inside(|| hold_back(address as u64, 0));
    } else {
        inside(|| origins::remove(address as u64));
    }
}

// SAFETY: every call goes on to `System` as it is, and its answer back.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the ones asked for.
        let place = inside(|| unsafe { System.alloc(layout) });
        made(place, layout.size());
        place
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the ones asked for.
        let place = inside(|| unsafe { System.alloc_zeroed(layout) });
        made(place, layout.size());
        place
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // Before: afterwards another thread may have the place already.
        freed(old);
        // SAFETY: the caller's promises are the ones asked for.
        inside(|| unsafe { System.dealloc(old, layout) });
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(old);
        // SAFETY: the caller's promises are the ones asked for.
        let place = inside(|| unsafe { System.realloc(old, layout, size) });
        // A block that could not grow is still there, without a note: harmless.
        made(place, size);
        place
    }
}
