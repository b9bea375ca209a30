use crate::frame::{PAGE_SHIFT, PAGE_SIZE, Page, new_page};
use std::ops::Range;

/// Pages of a chunk: as many as a word has bits.
pub(crate) const CHUNK_PAGES: u64 = 64;
/// log2 of [`CHUNK_PAGES`].
pub(crate) const CHUNK_SHIFT: u32 = CHUNK_PAGES.trailing_zeros();
/// Bytes of content that a chunk spans.
pub(crate) const CHUNK_SIZE: u64 = CHUNK_PAGES << PAGE_SHIFT;

/// The frames of 64 consecutive pages.
///
/// *Invariant.* Bit `i` of `present` is set if and only if `frames[i]` is there: questions about
/// many pages at once are answered from one word.
pub(crate) struct Chunk {
    frames: [Option<Box<Page>>; CHUNK_PAGES as usize],
    present: u64,
}

/// The bits of the pages in `pages` (0 to 64).
pub(crate) fn mask(pages: Range<u64>) -> u64 {
    if pages.is_empty() {
        return 0;
    }
    let len = pages.end - pages.start;
    (u64::MAX >> (CHUNK_PAGES - len)) << pages.start
}

/// The bits that the pages of `pages`, numbered in the file, have in chunk `chunk`.
pub(crate) fn mask_in(chunk: u64, pages: &Range<u64>) -> u64 {
    let base = chunk << CHUNK_SHIFT;
    let start = pages.start.clamp(base, base + CHUNK_PAGES) - base;
    let end = pages.end.clamp(base, base + CHUNK_PAGES) - base;
    mask(start..end)
}

/// The positions of the bits of a word, lowest first.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

impl Chunk {
    /// A chunk without frames.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            frames: [const { None }; CHUNK_PAGES as usize],
            present: 0,
        })
    }

    /// A bit for every page that has a frame.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// How many pages have a frame.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.present.count_ones())
    }

    /// The frame of page `bit`.
    pub(crate) fn frame(&self, bit: u32) -> Option<&Page> {
        self.frames[bit as usize].as_deref()
    }

    /// The frame of page `bit`, to be changed.
    pub(crate) fn frame_mut(&mut self, bit: u32) -> Option<&mut Page> {
        self.frames[bit as usize].as_deref_mut()
    }

    /// Makes `page` the frame of page `bit`.
    pub(crate) fn put(&mut self, bit: u32, page: Box<Page>) {
        self.present |= 1 << bit;
        self.frames[bit as usize] = Some(page);
    }

    /// Takes the frame of page `bit` away.
    pub(crate) fn take(&mut self, bit: u32) -> Option<Box<Page>> {
        self.present &= !(1 << bit);
        self.frames[bit as usize].take()
    }

    /// Drops the frames of all pages in `mask`.
    pub(crate) fn remove(&mut self, mask: u64) {
        for bit in bits(self.present & mask) {
            self.frames[bit as usize] = None;
        }
        self.present &= !mask;
    }

    /// Writes `data` at byte `at` of the chunk, making frames where there are none; it must end
    /// within the chunk.
    pub(crate) fn write(&mut self, at: usize, data: &[u8]) {
        let (mut at, mut data) = (at, data);
        while !data.is_empty() {
            let (page, offset) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let (now, later) = data.split_at(data.len().min(PAGE_SIZE - offset));
            match &mut self.frames[page] {
                Some(frame) => frame[offset..offset + now.len()].copy_from_slice(now),
                empty => *empty = Some(new_page(offset, now)),
            }
            self.present |= 1 << page;
            at += now.len();
            data = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_what_the_range_says() {
        assert_eq!(mask(0..0), 0);
        assert_eq!(mask(0..64), u64::MAX);
        assert_eq!(mask(63..64), 1 << 63);
        assert_eq!(mask(2..4), 0b1100);
        assert_eq!(mask_in(1, &(0..64)), 0);
        assert_eq!(mask_in(1, &(60..66)), 0b11);
        assert_eq!(mask_in(0, &(62..u64::MAX)), 0b11 << 62);
        assert_eq!(bits(0b1001_0010).collect::<Vec<_>>(), [1, 4, 7]);
    }

    #[test]
    fn presence_follows_the_frames() {
        let mut chunk = Chunk::new();
        chunk.write(4090, &[7; 10]);
        assert_eq!(chunk.present(), 0b11);
        assert_eq!(chunk.frame(0).unwrap()[4089..], [0, 7, 7, 7, 7, 7, 7]);
        assert_eq!(chunk.frame(1).unwrap()[..5], [7, 7, 7, 7, 0]);
        let page = chunk.take(0).unwrap();
        chunk.put(63, page);
        assert_eq!((chunk.present(), chunk.count()), (1 << 63 | 2, 2));
        chunk.remove(1 << 63);
        assert!(chunk.frame(63).is_none() && chunk.present() == 2);
    }
}
