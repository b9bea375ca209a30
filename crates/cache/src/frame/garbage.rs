//! The end of frames: their owners, and when a thread hands its garbage over.
//!
//! A writer that overwrites makes one frame and retires another, again and again. If garbage were
//! counted in pieces only, a few hundred of them would be hundreds of pages. That is more than the
//! caches next to a core hold, so every write would go to cold memory. So here a thread hands its
//! garbage over after a few frames, and its allocator reuses what comes back at once.
#![expect(unsafe_code, reason = "memory without an owner")]

use super::block::{Block, CLASSES};
use crate::epoch;
use crate::frame_primitive::{memory, owners};
use std::cell::Cell;
use std::ptr::NonNull;

/// Frames that a thread retires before it hands its garbage over.
const RETIRED_MAX: u64 = 16;

thread_local! {
    /// Frames retired since garbage was last handed over.
    static RETIRED: Cell<u64> = const { Cell::new(0) };
}

/// Can a block have several owners?
pub(super) fn can_be_shared(block: Block) -> bool {
    block.capacity() >= owners::SHARED_MIN
}

/// An owner gives up its part; the last one frees the memory.
///
/// # Safety
/// No thread reads it any more on behalf of this owner, which gives it up once.
pub(super) unsafe fn free(block: Block) {
    if can_be_shared(block) && !owners::leave(block.start) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { memory::ended(block.start, block.capacity()) };
    // SAFETY: the caller's promise.
    unsafe { block.deallocate() };
}

/// The function that frees a block of this size, given its start, when its last owner has given it
/// up.
pub(super) fn freeing(block: Block) -> unsafe fn(*mut ()) {
    const FREEING: [unsafe fn(*mut ()); CLASSES] = [
        free_class::<0>,
        free_class::<1>,
        free_class::<2>,
        free_class::<3>,
        free_class::<4>,
        free_class::<5>,
        free_class::<6>,
    ];
    FREEING[block.class()]
}

/// # Safety
/// The start of a block of this class; otherwise as for [`free`].
unsafe fn free_class<const CLASS: usize>(start: *mut ()) {
    if let Some(start) = NonNull::new(start.cast()) {
        // SAFETY: the caller's promise.
        unsafe { free(Block::at(start, CLASS)) };
    }
}

/// Notes that the thread has retired `frames` frames.
pub(super) fn retired(frames: u64) {
    RETIRED.set(RETIRED.get() + frames);
}

/// Hands the thread's garbage over when dropped, if it is much. Dropped after the map is unlocked,
/// because destructors run then.
pub(super) struct FlushGarbage;

impl Drop for FlushGarbage {
    #[inline]
    fn drop(&mut self) {
        if RETIRED.get() >= RETIRED_MAX {
            RETIRED.set(0);
            epoch::flush();
        }
    }
}
