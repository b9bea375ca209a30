//! Runs in bitmaps: words of 64 bits, bit 0 lowest.

/// The bits of one word within `from..to`, which must meet that word.
fn mask(word: usize, from: u32, to: u32) -> u64 {
    let base = word as u32 * 64;
    let low = from.max(base) - base;
    let high = to.min(base + 64) - base;
    (u64::MAX >> (64 - (high - low))) << low
}

/// The words that `from..to` touches.
fn touched(from: u32, to: u32) -> std::ops::Range<usize> {
    if from >= to {
        return 0..0;
    }
    from as usize / 64..(to as usize).div_ceil(64)
}

/// Sets all bits of a range.
pub(super) fn set(words: &mut [u64], from: u32, to: u32) {
    for word in touched(from, to) {
        words[word] |= mask(word, from, to);
    }
}

/// Clears all bits of a range.
pub(super) fn clear(words: &mut [u64], from: u32, to: u32) {
    for word in touched(from, to) {
        words[word] &= !mask(word, from, to);
    }
}

/// How many bits of a range are set.
pub(super) fn count(words: &[u64], from: u32, to: u32) -> u32 {
    touched(from, to)
        .map(|word| (words[word] & mask(word, from, to)).count_ones())
        .sum()
}

/// The first bit of a range that is set, or its end.
pub(super) fn next_set(words: &[u64], from: u32, to: u32) -> u32 {
    first(words, from, to, 0)
}

/// The first bit of a range that is clear, or its end.
pub(super) fn next_clear(words: &[u64], from: u32, to: u32) -> u32 {
    first(words, from, to, u64::MAX)
}

/// The first bit that differs from `skip`.
fn first(words: &[u64], from: u32, to: u32, skip: u64) -> u32 {
    if from >= to {
        return to;
    }
    let mut word = from as usize / 64;
    let mut bits = (words[word] ^ skip) & (u64::MAX << (from % 64));
    let end = (to as usize).div_ceil(64);
    while bits == 0 {
        word += 1;
        if word >= end {
            return to;
        }
        bits = words[word] ^ skip;
    }
    (word as u32 * 64 + bits.trailing_zeros()).min(to)
}

/// The start of the clear bits that end at `to`: behind the last set bit of `from..to`, or `from`.
pub(super) fn clear_before(words: &[u64], from: u32, to: u32) -> u32 {
    if from >= to {
        return to;
    }
    let mut word = (to as usize - 1) / 64;
    let mut bits = words[word] & (u64::MAX >> (63 - (to - 1) % 64));
    let start = from as usize / 64;
    while bits == 0 {
        if word == start {
            return from;
        }
        word -= 1;
        bits = words[word];
    }
    (word as u32 * 64 + 64 - bits.leading_zeros()).max(from)
}

/// The runs of clear bits within a range, as starts and ends.
pub(super) fn clear_runs(words: &[u64], from: u32, to: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let start = next_clear(words, at, to);
        at = next_set(words, start, to);
        (start < to).then_some((start, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_agree_with_bit_by_bit(
            seed in any::<[u64; 4]>(),
            (from, to) in (0..256u32).prop_flat_map(|from| (Just(from), from..=256)),
        ) {
            let bit = |words: &[u64], at: u32| words[at as usize / 64] >> (at % 64) & 1 == 1;
            let all = |words: &[u64]| (0..256).map(|at| bit(words, at)).collect::<Vec<_>>();
            let old = all(&seed);
            let range = from as usize..to as usize;

            let mut words = seed;
            set(&mut words, from, to);
            let mut expected = old.clone();
            expected[range.clone()].fill(true);
            prop_assert_eq!(all(&words), expected);

            let mut words = seed;
            clear(&mut words, from, to);
            let mut expected = old.clone();
            expected[range.clone()].fill(false);
            prop_assert_eq!(all(&words), expected);

            let set_bits = old[range.clone()].iter().filter(|&&b| b).count();
            prop_assert_eq!(count(&seed, from, to) as usize, set_bits);
            let find = |wanted| (from..to).find(|&at| bit(&seed, at) == wanted).unwrap_or(to);
            prop_assert_eq!(next_set(&seed, from, to), find(true));
            prop_assert_eq!(next_clear(&seed, from, to), find(false));
            let before = (from..to).rev().find(|&at| bit(&seed, at)).map_or(from, |at| at + 1);
            prop_assert_eq!(clear_before(&seed, from, to), before.min(to));
            let runs: u32 = clear_runs(&seed, from, to).map(|(start, end)| end - start).sum();
            prop_assert_eq!(runs as usize, range.len() - set_bits);
        }
    }
}
