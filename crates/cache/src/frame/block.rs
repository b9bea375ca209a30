//! The memory of one frame.
#![expect(
    unsafe_code,
    reason = "memory that is partly uninitialised and written while shared"
)]

use super::fill::Fill;
use super::size::FRAME_SIZE;
use crate::frame_primitive::memory;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;

/// Smallest size, in bytes.
const SIZE_MIN: usize = 64;
/// Leaves four address bits free.
const ALIGN: usize = 16;
/// Size classes: powers of two from [`SIZE_MIN`] to [`FRAME_SIZE`].
pub(super) const CLASSES: usize = (FRAME_SIZE / SIZE_MIN).trailing_zeros() as usize + 1;

/// A frame's address, its size class, and which bytes are filled. It owns nothing.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    // Whole words: loading a wide copy right after narrow stores would stall.
    class: usize,
    pub(super) fill: Fill,
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
            fill: Fill::NONE,
        }
    }

    pub(super) fn class(self) -> usize {
        self.class
    }

    /// New memory of a class, none of it filled.
    pub(super) fn allocate(class: usize) -> Self {
        // SAFETY: the layout has a size that is not zero.
        let start = unsafe { alloc(layout(class)) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout(class))
        };
        memory::took(Self::of_class(class) as i64);
        memory::made(start, Self::of_class(class));
        Self::at(start, class)
    }

    /// Returns the memory to the allocator.
    ///
    /// # Safety
    /// No thread reads it any more, and it is returned once.
    pub(super) unsafe fn deallocate(self) {
        memory::took(-(self.capacity() as i64));
        // SAFETY: allocated with this very layout; the rest is the caller's promise.
        unsafe { dealloc(self.start.as_ptr(), layout(self.class())) };
    }

    /// Bytes of a block of this class.
    pub(super) const fn of_class(class: usize) -> usize {
        SIZE_MIN << class
    }

    pub(super) fn capacity(self) -> usize {
        Self::of_class(self.class())
    }

    /// The filled bytes at the start: all of them, unless the frame is broken.
    ///
    /// # Safety
    /// The memory is not freed during `'a`, and `fill` comes from the thread that filled it.
    #[inline]
    pub(super) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise; these bytes are filled.
        unsafe { self.piece(0..self.fill.as_first().unwrap_or(0)) }
    }

    /// Some of the filled bytes.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes), and they are filled.
    #[inline]
    pub(super) unsafe fn piece<'a>(self, piece: Range<usize>) -> &'a [u8] {
        memory::read(self.start, piece.start, piece.end);
        // SAFETY: within the allocation.
        let start = unsafe { self.start.add(piece.start) };
        // SAFETY: initialised, and never written again.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), piece.len()) }
    }

    /// Can `len` bytes be filled from `at` on, where nothing is filled yet? Returns the resulting
    /// fill, and the range to be zeroed before them.
    fn room(self, at: usize, len: usize) -> Option<(Fill, Range<usize>)> {
        let end = at.checked_add(len).filter(|end| *end <= self.capacity())?;
        let first = self.fill.as_first().filter(|first| *first <= at);
        let broken = || Some((self.fill.with(at..end)?, at..at));
        match first {
            // Gaps only in frames of full size: small ones are mostly read before they grow.
            Some(first) if first < at && self.capacity() == FRAME_SIZE => {
                broken().or(Some((Fill::first(end), first..at)))
            }
            Some(first) => Some((Fill::first(end), first..at)),
            None => broken(),
        }
    }

    /// Fills `data` in at `at`, where nothing is filled yet. Other bytes before it become zeros, or
    /// stay a gap. `false` if there is no room. Bytes that readers know of are not touched.
    ///
    /// # Safety
    /// The memory is not freed meanwhile, and no other thread knows or fills the unfilled bytes.
    pub(super) unsafe fn put(&mut self, at: usize, data: &[u8]) -> bool {
        let Some((fill, zeros)) = self.room(at, data.len()) else {
            return false;
        };
        // SAFETY: within the allocation, and known to the caller only, as `room` found.
        unsafe { self.zero(zeros) };
        memory::written(self.start, at, at + data.len());
        // SAFETY: as above.
        let place = unsafe { self.start.add(at) };
        // SAFETY: `data.len()` bytes of the allocation that only the caller knows, so they do not
        // overlap `data`.
        unsafe { place.copy_from_nonoverlapping(NonNull::from(data).cast(), data.len()) };
        self.fill = fill;
        true
    }

    /// Fills the gaps with zeros.
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    pub(super) unsafe fn mend(&mut self) {
        for gap in self.fill.gaps() {
            // SAFETY: within the allocation, and not filled.
            unsafe { self.zero(gap) };
        }
        self.fill = Fill::first(self.fill.end());
    }

    /// # Safety
    /// The bytes are in the allocation, and only the caller knows them.
    unsafe fn zero(self, bytes: Range<usize>) {
        memory::written(self.start, bytes.start, bytes.end);
        // SAFETY: within the allocation.
        let start = unsafe { self.start.add(bytes.start) };
        // SAFETY: the caller's promise.
        unsafe { start.write_bytes(0, bytes.len()) };
    }
}
