//! What a slot holds, in one word: nothing, a frame, or a node.
//!
//! ```text
//! 63      61 60       48 47                 4 3    0
//! | zero    | fill      | address, upper part | kind |
//! ```
//!
//! What is filled is told by [`Fill`]. The kind is a frame's class of size, or [`NODE`]. All zeros: nothing. Addresses of user memory
//! have 47 bits on x86-64 (more only for those who ask for it), 48 on AArch64; checked for each.

use super::block::{Block, CLASSES};
use super::fill::Fill;
use std::ptr::{self, NonNull};

const KIND: usize = 0xf;
const NODE: usize = KIND;
const FILLED_SHIFT: u32 = 48;
const ADDRESS: usize = (1 << FILLED_SHIFT) - 1 - KIND;

const _: () =
    assert!(CLASSES <= NODE && FILLED_SHIFT + Fill::BITS <= usize::BITS && usize::BITS == 64);

/// The word, as a pointer that still knows its allocation.
pub(super) type Word = *mut u8;

/// No frame and no node.
pub(super) const NOTHING: Word = ptr::null_mut();

/// A word, taken apart.
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
        block.fill.number() << FILLED_SHIFT | block.class(),
    )
}

/// The word for a node.
pub(super) fn of_node<T>(node: NonNull<T>) -> Word {
    packed(node.cast(), NODE)
}

/// What the word says. The nodes of the words given in here are all of type `T`.
#[inline]
pub(super) fn parse<T>(word: Word) -> Content<T> {
    let Some(start) = NonNull::new(word.map_addr(|bits| bits & ADDRESS)) else {
        return Content::Nothing;
    };
    match word.addr() & KIND {
        NODE => Content::Node(start.cast()),
        class => {
            let mut block = Block::at(start, class);
            block.fill = Fill::of_number(word.addr() >> FILLED_SHIFT);
            Content::Frame(block)
        }
    }
}
