//! Memory of large frames that goes from hand to hand in a thread.
//!
//! A writer who overwrites makes a frame and retires one, again and again. If garbage were only
//! counted in pieces, a few hundred of them at a time would be hundreds of pages, more than the
//! caches next to a core hold, and every write would go to cold memory. So here bytes count: after
//! a few frames the thread's garbage is handed over, and what comes back is used again at once.
#![expect(unsafe_code, reason = "memory without an owner")]

use super::block::{Block, CLASSES};
use crate::epoch;
use crate::frame_primitive::{memory, owners};
use std::cell::Cell;
use std::ptr::NonNull;

/// Classes of which a thread keeps blocks, the largest ones.
const POOLED: usize = 3;

/// Blocks of each pooled class that a thread keeps.
const KEPT: usize = 32;

/// Frames that a thread retires before it hands its garbage over.
const RETIRED_MAX: u64 = 16;

/// What a thread keeps.
struct Pool {
    shelves: [Shelf; POOLED],
    retired: Cell<u64>,
}

/// Blocks of one class.
struct Shelf {
    blocks: [Cell<Option<NonNull<u8>>>; KEPT],
    len: Cell<usize>,
}

thread_local! {
    static POOL: Pool = const {
        Pool {
            shelves: [const {
                Shelf {
                    blocks: [const { Cell::new(None) }; KEPT],
                    len: Cell::new(0),
                }
            }; POOLED],
            retired: Cell::new(0),
        }
    };
}

/// The number of a class among the pooled ones.
fn pooled(class: usize) -> Option<usize> {
    class.checked_sub(CLASSES - POOLED)
}

impl Shelf {
    fn pop(&self) -> Option<NonNull<u8>> {
        let last = self.len.get().checked_sub(1)?;
        self.len.set(last);
        self.blocks[last].take()
    }

    fn push(&self, start: NonNull<u8>) -> bool {
        let len = self.len.get();
        if len == KEPT {
            return false;
        }
        self.blocks[len].set(Some(start));
        self.len.set(len + 1);
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (pooled, shelf) in self.shelves.iter().enumerate() {
            let class = CLASSES - POOLED + pooled;
            while let Some(start) = shelf.pop() {
                // SAFETY: a block of this class that `free` was given for good.
                unsafe { Block::at(start, class).deallocate() };
            }
        }
    }
}

/// Memory for `len` bytes, at most [`FRAME_SIZE`](super::FRAME_SIZE), none of them filled.
pub(super) fn allocate(len: usize) -> Block {
    let class = Block::class_for(len);
    let pop = |pooled: usize| {
        let popped = POOL.try_with(|pool| pool.shelves[pooled].pop());
        popped.ok().flatten()
    };
    let kept = pooled(class).and_then(pop);
    let block = kept.map_or_else(|| Block::allocate(class), |start| Block::at(start, class));
    memory::made(block.start, block.capacity());
    block
}

/// Can a block have several owners?
pub(super) fn can_be_shared(block: Block) -> bool {
    block.capacity() >= owners::SHARED_MIN
}

/// An owner gives up his part; the last one gives the memory back.
///
/// # Safety
/// Nobody reads it any more on this owner's behalf, and he gives it up once.
pub(super) unsafe fn free(block: Block) {
    if can_be_shared(block) && !owners::leave(block.start) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { memory::ended(block.start, block.capacity()) };
    let push = |pooled: usize| {
        let pushed = POOL.try_with(|pool| pool.shelves[pooled].push(block.start));
        pushed == Ok(true)
    };
    if !pooled(block.class()).is_some_and(push) {
        // SAFETY: the caller's promise.
        unsafe { block.deallocate() };
    }
}

/// What frees a block, given its start, when it is in nobody's hands any more.
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
/// The start of a block of this class; the rest as for [`free`].
unsafe fn free_class<const CLASS: usize>(start: *mut ()) {
    if let Some(start) = NonNull::new(start.cast()) {
        // SAFETY: the caller's promise.
        unsafe { free(Block::at(start, CLASS)) };
    }
}

/// Says that the thread has retired so many frames.
pub(super) fn retired(frames: u64) {
    // A thread that ends hands everything over anyway.
    let _ = POOL.try_with(|pool| pool.retired.set(pool.retired.get() + frames));
}

/// Hands the thread's garbage over when dropped, if it is much. Not before the map is unlocked:
/// destructors run then.
pub(super) struct HandOver;

impl Drop for HandOver {
    #[inline]
    fn drop(&mut self) {
        let is_much = POOL.try_with(|pool| {
            let is_much = pool.retired.get() >= RETIRED_MAX;
            if is_much {
                pool.retired.set(0);
            }
            is_much
        });
        if is_much == Ok(true) {
            epoch::flush();
        }
    }
}
