//! The calls themselves.
#![expect(unsafe_code, reason = "an allocator")]

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// All blocks of mimalloc are aligned to this, however small: their sizes are multiples of it, and
/// so are the places where they begin.
const WORD: usize = size_of::<u64>();

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
