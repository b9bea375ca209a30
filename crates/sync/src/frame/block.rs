//! The memory of one frame.
#![expect(
    unsafe_code,
    reason = "memory that is partly uninitialised and written while shared"
)]

use super::FRAME_SIZE;
use crate::frame_primitive::memory;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Smallest size, in bytes.
const SIZE_MIN: usize = 64;
/// Leaves four bits of an address free.
const ALIGN: usize = 16;
/// Classes of sizes: powers of two from [`SIZE_MIN`] to [`FRAME_SIZE`].
pub(super) const CLASSES: usize = (FRAME_SIZE / SIZE_MIN).trailing_zeros() as usize + 1;

/// Where a frame's bytes are, how many there can be, and how many are filled. It owns nothing.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    pub(super) class: usize,
    pub(super) filled: usize,
}

fn layout(class: usize) -> Layout {
    Layout::from_size_align(SIZE_MIN << class, ALIGN).expect("a power of two")
}

impl Block {
    /// The class for `len` bytes.
    pub(super) fn class_for(len: usize) -> usize {
        assert!(len <= FRAME_SIZE, "a frame of {len} bytes");
        (len.next_power_of_two().max(SIZE_MIN) / SIZE_MIN).trailing_zeros() as usize
    }

    /// Memory of a class, none of it filled.
    pub(super) fn at(start: NonNull<u8>, class: usize) -> Self {
        Self {
            start,
            class,
            filled: 0,
        }
    }

    /// New memory of a class, none of it filled.
    pub(super) fn allocate(class: usize) -> Self {
        // SAFETY: the layout has a size that is not zero.
        let start = unsafe { alloc(layout(class)) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout(class))
        };
        Self::at(start, class)
    }

    /// Gives the memory back to the allocator.
    ///
    /// # Safety
    /// Nobody reads it any more, and it is given back once.
    pub(super) unsafe fn deallocate(self) {
        // SAFETY: allocated with this very layout; the rest is the caller's promise.
        unsafe { dealloc(self.start.as_ptr(), layout(self.class)) };
    }

    /// Bytes of a block of a class.
    pub(super) const fn of_class(class: usize) -> usize {
        SIZE_MIN << class
    }

    pub(super) fn capacity(self) -> usize {
        Self::of_class(self.class)
    }

    /// The filled bytes.
    ///
    /// # Safety
    /// The memory is not freed during `'a`, and `filled` was said by whoever filled it.
    pub(super) unsafe fn bytes<'a>(self) -> &'a [u8] {
        memory::read(self.start, self.filled);
        // SAFETY: initialised up to `filled`, and never written again up to there.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) }
    }

    /// Puts `data` behind the filled bytes, after `gap` zeros, and counts both as filled. What
    /// others read, up to `filled` so far, is not touched.
    ///
    /// # Safety
    /// The memory is not freed meanwhile, and nobody else knows or fills bytes behind `filled`.
    pub(super) unsafe fn fill(&mut self, gap: usize, data: &[u8]) {
        let at = self.filled + gap;
        assert!(
            gap <= FRAME_SIZE && data.len() <= FRAME_SIZE && at + data.len() <= self.capacity(),
            "a frame filled beyond its end"
        );
        memory::written(self.start, self.filled, at + data.len());
        // SAFETY: within the allocation, as just checked.
        let behind = unsafe { self.start.add(self.filled) };
        // SAFETY: as above.
        let place = unsafe { self.start.add(at) };
        // SAFETY: `gap` bytes of the allocation, which are the caller's alone.
        unsafe { behind.write_bytes(0, gap) };
        // SAFETY: `data.len()` bytes of the allocation, the caller's alone, so not part of `data`.
        unsafe { place.copy_from_nonoverlapping(NonNull::from(data).cast(), data.len()) };
        self.filled = at + data.len();
    }
}
