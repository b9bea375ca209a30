//! Groups of 64 pages with one state bit for each page.

use crate::PAGE_SIZE;
use std::ops::Range;

/// log2 of [`PAGE_SIZE`].
pub(crate) const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();
/// Pages of a group: as many as a word has bits.
pub(crate) const GROUP_PAGES: u64 = 64;
/// Bytes of content that a group spans.
pub(crate) const GROUP_SIZE: u64 = GROUP_PAGES << PAGE_SHIFT;

/// The bits of the pages in `pages` (0 to 64).
pub(crate) fn mask(pages: Range<u64>) -> u64 {
    if pages.is_empty() {
        return 0;
    }
    let len = pages.end - pages.start;
    (u64::MAX >> (GROUP_PAGES - len)) << pages.start
}

/// The positions of the bits of a word, lowest first.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
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
        assert_eq!(bits(0b1001_0010).collect::<Vec<_>>(), [1, 4, 7]);
    }
}
