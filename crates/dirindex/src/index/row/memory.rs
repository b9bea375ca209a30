//! A row's memory: its size, its state, its allocation and its end.
#![expect(unsafe_code, reason = "a header with slots behind it")]

use crate::index::slot::Slot;
use crate::primitive::{AtomicU64, CLASS_SMALL, MODEL};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::mem::size_of;
use std::ptr::NonNull;

const CLASS_BITS: u32 = 6;
const COUNT_BITS: u32 = 29;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// The maximum number of names; a row with some spare slots must be representable.
pub(in crate::index) const NAMES_MAX: usize = 1 << (COUNT_BITS - 1);

/// The word before the slots: class 6 bits, tail 29 bits, gaps 29 bits.
#[repr(C)]
pub(in crate::index) struct RowHead {
    pub(super) state: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) class: u32,
    /// Slots in use, gaps included.
    pub(super) tail: usize,
    /// Gaps among them.
    pub(super) gaps: usize,
}

impl State {
    pub(super) fn pack(self) -> u64 {
        debug_assert!(self.tail as u64 <= COUNT_MASK && self.gaps <= self.tail);
        u64::from(self.class)
            | (self.tail as u64) << CLASS_BITS
            | (self.gaps as u64) << (CLASS_BITS + COUNT_BITS)
    }

    #[inline]
    pub(super) fn unpack(state: u64) -> Self {
        Self {
            class: (state & ((1 << CLASS_BITS) - 1)) as u32,
            tail: (state >> CLASS_BITS & COUNT_MASK) as usize,
            gaps: (state >> (CLASS_BITS + COUNT_BITS)) as usize,
        }
    }
}

/// Slots of a row of this class. With the header they make 4, 8, 16, 32 words, then two steps for
/// each doubling, so that a row of 1000 names wastes little.
#[inline]
pub(super) fn capacity(class: u32) -> usize {
    const LARGEST_SMALL: usize = 4 << CLASS_SMALL;
    let words = match steps_beyond_small(class) {
        None => 4 << class,
        Some(steps) if steps.is_multiple_of(2) => (LARGEST_SMALL * 3 / 2) << (steps / 2),
        Some(steps) => (LARGEST_SMALL * 2) << (steps / 2),
    };
    words - 1
}

#[inline]
fn steps_beyond_small(class: u32) -> Option<u32> {
    class.checked_sub(CLASS_SMALL + 1)
}

/// Does a row of this class have no table?
pub(in crate::index) fn is_small(class: u32) -> bool {
    steps_beyond_small(class).is_none()
}

/// The class of a row for `names` names and a few more.
pub(in crate::index) fn class_for(names: usize) -> u32 {
    let wanted = names + names / 4 + 1;
    debug_assert!(names <= NAMES_MAX);
    (0..1 << CLASS_BITS)
        .find(|&class| capacity(class) >= wanted)
        .expect("names are limited")
}

pub(super) fn layout(class: u32) -> Layout {
    let size = size_of::<RowHead>() + capacity(class) * size_of::<Slot>();
    Layout::from_size_align(size, align_of::<RowHead>()).expect("names are limited")
}

/// Makes an empty row.
pub(in crate::index) fn allocate(class: u32) -> NonNull<RowHead> {
    let layout = layout(class);
    // SAFETY: the layout is not of size 0: it has a header.
    let memory = unsafe { alloc_zeroed(layout) };
    let Some(head) = NonNull::new(memory.cast::<RowHead>()) else {
        handle_alloc_error(layout)
    };
    let state = State {
        class,
        tail: 0,
        gaps: 0,
    };
    let fresh = RowHead {
        state: AtomicU64::new(state.pack()),
    };
    // SAFETY: allocated above with room and alignment for a header.
    unsafe { head.write(fresh) };
    if MODEL {
        // SAFETY: the slots follow the header within the allocation.
        let first = unsafe { head.add(1) }.cast::<Slot>();
        for position in 0..capacity(class) {
            // SAFETY: below the number of slots allocated.
            let slot = unsafe { first.add(position) };
            // SAFETY: allocated, aligned, and not shared yet.
            unsafe { slot.write(Slot::new()) };
        }
    }
    head
}
