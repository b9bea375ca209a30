//! Where in the file each one reads and writes, and what is there.

use std::ffi::CStr;

const PAGE: usize = 4096;

/// The file that is read.
pub(super) const SHARED: &CStr = c"/shared";

/// A file like it, for a writer that shares no file with the readers.
pub(super) const APART: &CStr = c"/apart";

/// What an overwriting thread goes round in, behind all that is read.
const OVERWRITTEN: usize = 16 * PAGE;

/// The file: first a range for each reader, then the overwritten pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    readers: usize,
    largest: usize,
}

impl Layout {
    /// For so many readers, and reads of this size at most.
    pub(super) fn new(readers: usize, largest: usize) -> Self {
        Self { readers, largest }
    }

    /// Where the `index`th reader's own range of this size begins: no two share a page.
    pub(super) fn own(index: usize, bytes: usize) -> u64 {
        (index * bytes.next_multiple_of(PAGE)) as u64
    }

    /// Where the pages to be overwritten begin.
    fn overwritten(self) -> u64 {
        Self::own(self.readers, self.largest)
    }

    /// The `turn`th page to be overwritten.
    pub(super) fn page(self, turn: usize) -> u64 {
        self.overwritten() + (turn * PAGE % OVERWRITTEN) as u64
    }

    /// The length of the file, before anything is appended.
    pub(super) fn len(self) -> u64 {
        self.overwritten() + OVERWRITTEN as u64
    }
}

/// Fills a piece of the file that begins at `offset`: no two pages alike.
pub(super) fn fill(offset: u64, piece: &mut [u8]) {
    for (byte, at) in piece.iter_mut().zip(offset..) {
        *byte = expected(at);
    }
}

/// Are these the bytes of the file from `offset` on?
pub(super) fn holds(offset: u64, piece: &[u8]) -> bool {
    piece
        .iter()
        .zip(offset..)
        .all(|(&byte, at)| byte == expected(at))
}

fn expected(at: u64) -> u8 {
    let [low, ..] = (at ^ (at >> 12).wrapping_mul(37)).to_le_bytes();
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_share_no_page_with_each_other_nor_with_what_is_overwritten() {
        let layout = Layout::new(3, 5000);
        let own: Vec<_> = (0..3).map(|index| Layout::own(index, 5000)).collect();
        assert_eq!(own, [0, 8192, 16384]);
        assert_eq!(layout.page(0), 24576);
        let pages: Vec<_> = (0..32).map(|turn| layout.page(turn)).collect();
        assert!(pages.iter().all(|&page| page >= 24576));
        assert!(pages.iter().all(|&page| page + 4096 <= layout.len()));
        assert_eq!(pages[..16], pages[16..], "round and round");
    }

    #[test]
    fn bytes_of_another_place_are_not_mistaken() {
        let mut piece = vec![0; 9000];
        fill(4096, &mut piece);
        assert!(holds(4096, &piece));
        assert!(!holds(8192, &piece) && !holds(4097, &piece));
    }
}
