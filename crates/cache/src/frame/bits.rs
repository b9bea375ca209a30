//! Sets of up to 64 numbers as the bits of a word.

use std::ops::Range;

/// The bits of `numbers` (0 to 64).
pub(crate) fn mask(numbers: Range<u64>) -> u64 {
    if numbers.is_empty() {
        return 0;
    }
    let len = numbers.end - numbers.start;
    (u64::MAX >> (64 - len)) << numbers.start
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
