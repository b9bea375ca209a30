//! The content of a slot in one word: nothing, a frame, or a node.
//!
//! ```text
//! | bits  | 63   61 | 60   58 | 57      48 | 47                  4 | 3    0 |
//! | frame | 0       | fill                 | address, upper part   | 1 to 7 |
//! | node  | shift             | 0          | address, upper part   | 8      |
//! ```
//!
//! A word of zeros is an empty slot.
//!
//! [`Fill`] says which bytes are filled, and 1 to 7 is one more than a frame's size class. The
//! shift selects the bits of a number that choose the slot in the node. So the next slot is known
//! once the node's address is, without a load from the node. User addresses have 47 bits on x86-64
//! (more only on request) and 48 on AArch64; each is checked.

use super::block::{Block, CLASSES};
use super::fill::Fill;
use std::ptr::{self, NonNull};

const KIND: usize = 0xf;
/// A bit of its own, so that one test suffices.
const NODE: usize = 8;
const FILLED_SHIFT: u32 = 48;
const SHIFT_SHIFT: u32 = 58;
const ADDRESS: usize = (1 << FILLED_SHIFT) - 1 - KIND;

const _: () =
    assert!(CLASSES < NODE && FILLED_SHIFT + Fill::BITS <= usize::BITS && usize::BITS == 64);

/// The word, as a pointer with the provenance of its allocation.
pub(super) type Word = *mut u8;

/// No frame and no node.
pub(super) const NOTHING: Word = ptr::null_mut();

/// A word, decoded.
pub(super) enum Content<T> {
    Nothing,
    Frame(Block),
    Node(NonNull<T>),
}

fn packed(start: NonNull<u8>, bits: usize) -> Word {
    let address = start.addr().get();
    assert!(
        address & !ADDRESS == 0,
        "an address of more than 48 bits, or not aligned: {address:#x}"
    );
    start.as_ptr().map_addr(|address| address | bits)
}

/// The word for a frame.
pub(super) fn of_frame(block: Block) -> Word {
    packed(
        block.start,
        block.fill.number() << FILLED_SHIFT | (block.class() + 1),
    )
}

/// The word for a node with this shift.
pub(super) fn of_node<T>(node: NonNull<T>, shift: u32) -> Word {
    debug_assert!(shift < 1 << (usize::BITS - SHIFT_SHIFT));
    packed(node.cast(), (shift as usize) << SHIFT_SHIFT | NODE)
}

/// Decodes a word. All nodes in words given here are of type `T`.
#[inline]
pub(super) fn parse<T>(word: Word) -> Content<T> {
    let Some(start) = start(word) else {
        return Content::Nothing;
    };
    if is_node(word) {
        Content::Node(start.cast())
    } else {
        Content::Frame(block(word, start))
    }
}

/// Does the word lead to a node?
#[inline(always)]
pub(super) fn is_node(word: Word) -> bool {
    word.addr() & NODE != 0
}

/// The address and the shift of the node that the word leads to.
#[inline(always)]
pub(super) fn node<T>(word: Word) -> (*const T, u32) {
    let address = word.map_addr(|bits| (bits & (ADDRESS | KIND)).wrapping_sub(NODE));
    let shift = word.addr() >> SHIFT_SHIFT;
    (address.cast_const().cast(), shift as u32)
}

/// The frame, if the word leads to one. It does not lead to a node.
#[inline(always)]
pub(super) fn as_frame(word: Word) -> Option<Block> {
    start(word).map(|start| block(word, start))
}

#[inline(always)]
fn start(word: Word) -> Option<NonNull<u8>> {
    NonNull::new(word.map_addr(|bits| bits & ADDRESS))
}

#[inline(always)]
fn block(word: Word, start: NonNull<u8>) -> Block {
    let mut block = Block::at(start, (word.addr() & KIND) - 1);
    block.fill = Fill::of_number(word.addr() >> FILLED_SHIFT);
    block
}
