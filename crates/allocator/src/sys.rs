//! The calls of mimalloc.
#![expect(unsafe_code, reason = "an allocator")]

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};

/// Every block of mimalloc is aligned to this, however small: block sizes are multiples of it, and
/// so are block addresses.
const WORD: usize = size_of::<u64>();

unsafe extern "C" {
    /// Sets an option, unless the environment has.
    fn mi_option_set_default(option: c_int, value: c_long);

    /// Sets an option unconditionally.
    fn mi_option_set(option: c_int, value: c_long);

    /// Frees cached memory; all of it if `force`.
    fn mi_collect(force: bool);
}

/// `mi_option_page_reclaim_on_free` of `mimalloc.h`, by its position there. A test checks its
/// neighbours.
const PAGE_RECLAIM_ON_FREE: c_int = 35;

/// `mi_option_purge_delay`, by its position too.
const PURGE_DELAY: c_int = 15;

/// Lets a thread that frees a block of a full page take the page over.
///
/// A full page belongs to no thread. Without this option only its former owner may reclaim it, and
/// each free by another thread takes two atomic exchanges. Here the thread that frees one block
/// mostly frees the rest: helpers drop inodes that other threads made, and so do the threads of a
/// server.
extern "C" fn let_pages_be_taken_over() {
    // SAFETY: before `main` there is no other thread, and the option exists.
    unsafe { mi_option_set_default(PAGE_RECLAIM_ON_FREE, 1) };
}

/// Called by the loader.
#[used]
// SAFETY: the section is a list of functions of this kind.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = let_pages_be_taken_over;

/// Sets mimalloc for scarce memory. Free memory then returns to the system at once, not after a
/// second, in which other threads' heaps would keep most of it. And pages stay with the threads
/// that allocate from them: a thread that reclaims frees blocks of many others, and would collect
/// pages from which it never allocates.
pub fn return_at_once() {
    // SAFETY: the option exists. It is a number that mimalloc reads whenever memory becomes free.
    unsafe { mi_option_set(PURGE_DELAY, 0) };
    // SAFETY: the same.
    unsafe { mi_option_set(PAGE_RECLAIM_ON_FREE, 0) };
}

/// Returns the cached memory of the calling thread and of ended threads to the system, and from now
/// on memory [as it becomes free](return_at_once).
pub fn trim() {
    return_at_once();
    // SAFETY: no allocated block is touched.
    unsafe { mi_collect(true) };
}

/// The `#[global_allocator]` of Holdfast's programs.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

// SAFETY: mimalloc's blocks are as large as requested and do not overlap. Each is aligned to a word
// or to the requested alignment. It does not unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= WORD {
            // SAFETY: any size may be requested.
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
        // SAFETY: the caller's promise: it came from this allocator, and is not used any more.
        unsafe { mi_free(block.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= WORD {
            // SAFETY: the caller's promise: it came from this allocator, and the new block replaces
            // it.
            return unsafe { mi_realloc(block.cast(), new_size) }.cast();
        }
        // SAFETY: as above.
        unsafe { mi_realloc_aligned(block.cast(), new_size, layout.align()) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a block, and checks the content after it has grown or shrunk.
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
        // Its neighbours are `generic_collect` before, `page_full_retain` and `page_max_candidates`
        // after.
        // SAFETY: asks for values.
        let around = [-1, 0, 1, 2].map(|by| unsafe { mi_option_get(PAGE_RECLAIM_ON_FREE + by) });
        assert_eq!(around, [10_000, 1, 2, 4]);
        // The one with a delay, between `deprecated_eager_commit_delay` and `use_numa_nodes`.
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
