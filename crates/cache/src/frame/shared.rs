use super::block::Block;
use super::fill::Fill;
use super::garbage;
use super::size::FRAME_SIZE;
use super::stored::Stored;
use crate::frame_primitive::owners;
use std::fmt;
use std::ptr::NonNull;

/// A frame as it was at some moment, kept as long as its owner wants, whatever happens in its map.
///
/// *Invariant.* It is one of the frame's owners: the memory is freed with the last of them. The
/// bytes that were filled when it was made never change, and it shows no others.
pub struct Shared {
    // The fields of a `Block`, without padding.
    start: NonNull<u8>,
    fill: u16,
    class: u8,
    /// Bytes from here on are not shown.
    end: u16,
}

// SAFETY: no thread changes the bytes, and any thread may decrement the count of owners.
#[expect(unsafe_code, reason = "memory that is only read")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "memory that is only read")]
unsafe impl Sync for Shared {}

const _: () = assert!(size_of::<Option<Shared>>() == 16);

impl Stored<'_> {
    /// Keeps the frame as it is now. `None`: it is too small for that, and has to be copied.
    #[must_use]
    pub fn share(self) -> Option<Shared> {
        let block = self.block();
        garbage::can_be_shared(block).then(|| {
            // The slot from which it is borrowed is an owner, and does not give it up meanwhile.
            owners::join(block.start);
            Shared {
                start: block.start,
                fill: block.fill.number() as u16,
                class: block.class() as u8,
                end: FRAME_SIZE as u16,
            }
        })
    }

    /// Makes `kept` show the frame as it is now, if it was made of this frame; returns whether it
    /// was.
    #[must_use]
    pub fn renew(self, kept: &mut Shared) -> bool {
        // The frame of an owner is not freed, so the same address is the same frame.
        let same = kept.start == self.block().start;
        if same {
            (kept.fill, kept.end) = (self.block().fill.number() as u16, FRAME_SIZE as u16);
        }
        same
    }
}

impl Shared {
    fn block(&self) -> Block {
        let mut block = Block::at(self.start, usize::from(self.class));
        block.fill = Fill::of_number(usize::from(self.fill));
        block
    }

    /// The filled bytes in order, each piece with its offset; all others of the frame were zero.
    #[expect(unsafe_code, reason = "memory that is only read")]
    pub fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let end = usize::from(self.end);
        self.block().fill.pieces().filter_map(move |piece| {
            let piece = piece.start..piece.end.min(end);
            // SAFETY: not freed while `self` is one of its owners. These bytes were initialised
            // before it was shared, and are not written again.
            (!piece.is_empty()).then(|| (piece.start, unsafe { self.block().piece(piece) }))
        })
    }

    /// A copy of the whole frame.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, piece) in self.pieces() {
            bytes.resize(at, 0);
            bytes.extend_from_slice(piece);
        }
        bytes
    }

    /// Hides bytes from `len` on: they count as zeros.
    pub fn truncate(&mut self, len: usize) {
        self.end = self.end.min(len.min(FRAME_SIZE) as u16);
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        owners::join(self.start);
        Self { ..*self }
    }
}

impl Drop for Shared {
    #[expect(unsafe_code, reason = "one of the owners goes")]
    fn drop(&mut self) {
        // SAFETY: `join` counted `self`, which ends here.
        unsafe { garbage::free(self.block()) };
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("fill", &self.block().fill)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
