//! Random numbers that follow from a seed.

/// A small seeded generator of random numbers (xoshiro256**).
///
/// It lives here rather than in a dependency because a seed that failed once must give the
/// same operations for as long as the project exists.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// A generator; its whole sequence follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let state = &mut self.0;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// An index into something of length `len`; 0 when `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `odds` times.
    pub fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

/// One step of splitmix64: also good for filling buffers from a seed.
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Bytes that follow from `seed`: what write operations write.
#[must_use]
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = vec![0; len];
    // By words of an array: volumes are filled with these bytes thousands of times.
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = splitmix(&mut state).to_le_bytes();
    }
    rest.copy_from_slice(&splitmix(&mut state).to_le_bytes()[..rest.len()]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_sequence_for_ever() {
        let mut rng = Rng::new(7);
        let first: Vec<u64> = (0..4).map(|_| rng.bits()).collect();
        let mut again = Rng::new(7);
        assert_eq!(first, (0..4).map(|_| again.bits()).collect::<Vec<_>>());
        assert_ne!(first[0], Rng::new(8).bits());
        assert_eq!(pattern(3, 13)[..5], pattern(3, 5)[..]);
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = Rng::new(1);
        assert!((0..10_000).all(|_| rng.below(10) < 10));
        assert!((0..10_000).any(|_| rng.below(10) == 9));
        assert_eq!(rng.below(0), 0);
    }
}
