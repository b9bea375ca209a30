//! The calls themselves.
#![expect(unsafe_code, reason = "an allocator")]

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};

/// All blocks of mimalloc are aligned to this, however small: their sizes are multiples of it, and
/// so are the places where they begin.
const WORD: usize = size_of::<u64>();

unsafe extern "C" {
    /// Sets an option, unless the environment has.
    fn mi_option_set_default(option: c_int, value: c_long);

    /// Sets an option, whatever it was.
    fn mi_option_set(option: c_int, value: c_long);

    /// Frees what is kept to be handed out again; all of it, by force.
    fn mi_collect(force: bool);
}

/// `mi_option_page_reclaim_on_free` of `mimalloc.h`: by its place there, and the test looks at those beside it.
const PAGE_RECLAIM_ON_FREE: c_int = 35;

/// `mi_option_purge_delay`, by its place as well.
const PURGE_DELAY: c_int = 15;

/// A page that has become full belongs to nobody. Then who frees one of its blocks takes two exchanges for it, unless he
/// made the page, and mimalloc lets nobody else take it over. Here the thread that frees mostly goes on to free
/// the rest: helpers let go of inodes that others have made, and a server's threads those of each other.
extern "C" fn let_pages_be_taken_over() {
    // SAFETY: before `main` there is no other thread, and the option exists.
    unsafe { mi_option_set_default(PAGE_RECLAIM_ON_FREE, 1) };
}

/// Called by the loader.
#[used]
// SAFETY: the section is a list of functions of this kind.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = let_pages_be_taken_over;

/// Where memory is short: from now on it goes back to the system when it is free, not a second later, for other threads' heaps would keep most of
/// what goes and comes within that; and pages stay with the threads that allocate from them, else those that free blocks of many
/// others, as a thread that reclaims does, gather what nobody allocates from.
pub fn return_at_once() {
    // SAFETY: the option exists. It is a number that is looked at whenever memory becomes free.
    unsafe { mi_option_set(PURGE_DELAY, 0) };
    // SAFETY: the same.
    unsafe { mi_option_set(PAGE_RECLAIM_ON_FREE, 0) };
}

/// Returns to the system what the calling thread and threads that ended keep to hand out again, and what
/// becomes free from now on [at once](return_at_once).
pub fn trim() {
    return_at_once();
    // SAFETY: no block that anybody has is touched.
    unsafe { mi_collect(true) };
}

/// To be the `#[global_allocator]` of a program.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

// SAFETY: mimalloc's blocks are as large as was asked for and do not overlap; each is aligned to a word,
// or to what was asked for; it does not unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= WORD {
            // SAFETY: any size may be asked for.
            return unsafe { mi_malloc(layout.size()) }.cast();
        }
        // SAFETY: as above; a layout's alignment is a power of two.
        unsafe { mi_malloc_aligned(layout.size(), layout.align()) }.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= WORD {
            // SAFETY: as for `alloc`.
            return unsafe { mi_zalloc(layout.size()) }.cast();
        }
        // SAFETY: as for `alloc`.
        unsafe { mi_zalloc_aligned(layout.size(), layout.align()) }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise: it came from here, and is not used any more.
        unsafe { mi_free(block.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= WORD {
            // SAFETY: the caller's promise: it came from here, and the new block takes its place.
            return unsafe { mi_realloc(block.cast(), new_size) }.cast();
        }
        // SAFETY: as above.
        unsafe { mi_realloc_aligned(block.cast(), new_size, layout.align()) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a block with bytes of its own, and sees them again when it has grown or shrunk.
    fn check(size: usize, align: usize, new_size: usize, byte: u8) {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: none has size 0.
        let block = unsafe { Allocator.alloc(layout) };
        assert!(!block.is_null() && block.addr().is_multiple_of(align));
        // SAFETY: so many bytes were allocated.
        unsafe { block.write_bytes(byte, size) };
        // SAFETY: allocated above.
        let block = unsafe { Allocator.realloc(block, layout, new_size) };
        assert!(!block.is_null() && block.addr().is_multiple_of(align));
        // SAFETY: so many bytes were written.
        let kept = unsafe { std::slice::from_raw_parts(block, size.min(new_size)) };
        assert!(kept.iter().all(|&it| it == byte), "{size} {align}");
        let layout = Layout::from_size_align(new_size, align).unwrap();
        // SAFETY: allocated above, with this layout by now.
        unsafe { Allocator.dealloc(block, layout) };
        // SAFETY: none has size 0.
        let block = unsafe { Allocator.alloc_zeroed(layout) };
        assert!(!block.is_null() && block.addr().is_multiple_of(align));
        // SAFETY: so many bytes were allocated, and written as zeros.
        let zeros = unsafe { std::slice::from_raw_parts(block, new_size) };
        assert!(zeros.iter().all(|&it| it == 0), "{new_size} {align}");
        // SAFETY: allocated above.
        unsafe { Allocator.dealloc(block, layout) };
    }

    #[test]
    fn who_frees_may_take_pages_over() {
        unsafe extern "C" {
            fn mi_option_get(option: c_int) -> c_long;
        }
        // The one before it is `generic_collect`, those behind it are `page_full_retain` and `page_max_candidates`.
        // SAFETY: asks for values.
        let around = [-1, 0, 1, 2].map(|by| unsafe { mi_option_get(PAGE_RECLAIM_ON_FREE + by) });
        assert_eq!(around, [10_000, 1, 2, 4]);
        // Between `deprecated_eager_commit_delay` and `use_numa_nodes`: the one with a delay.
        // SAFETY: asks for a value.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 1000);
        return_at_once();
        // SAFETY: as above.
        let short = [PURGE_DELAY, PAGE_RECLAIM_ON_FREE].map(|it| unsafe { mi_option_get(it) });
        assert_eq!(short, [0, 0]);
        trim();
    }

    #[test]
    fn blocks_are_aligned_and_keep_what_is_in_them() {
        for align in (0..13).map(|bits| 1 << bits) {
            for size in (1..200).chain([1000, 4096, 5000, 70_000]) {
                check(size, align, size + 1, size as u8);
                check(size, align, size.div_ceil(2), 0xff);
                check(size, align, 3 * size, 1);
            }
        }
    }
}
