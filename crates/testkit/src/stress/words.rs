//! Content that tells whether it was written by this file system: every word has its round and a
//! checksum, or is zero.

use crate::rng::Rng;

/// Bytes of a word. Whatever changes content does so in multiples of it.
pub(super) const WORD: usize = 8;

fn checksum(half: u64) -> u64 {
    half.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// A word of this round.
fn word(round: u16, random: u32) -> u64 {
    let half = u64::from(round) << 32 | u64::from(random);
    half << 16 | checksum(half)
}

/// So many bytes of words.
pub(super) fn fill(round: u16, rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + WORD);
    while bytes.len() < len {
        bytes.extend_from_slice(&word(round, rng.bits() as u32).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The first bytes that no write of this round can have left at a multiple of a word.
pub(super) fn foreign(round: u16, bytes: &[u8]) -> Option<&[u8]> {
    bytes.chunks_exact(WORD).find(|chunk| {
        let mut little = [0; WORD];
        little.copy_from_slice(chunk);
        let found = u64::from_le_bytes(little);
        let half = found >> 16;
        let genuine = half >> 32 == u64::from(round) && found & 0xffff == checksum(half);
        found != 0 && !genuine
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_rounds_and_torn_ones_are_foreign() {
        let mut rng = Rng::new(1);
        let mut bytes = fill(7, &mut rng, 64);
        assert_eq!(foreign(7, &bytes), None);
        assert!(foreign(8, &bytes).is_some());
        bytes[8..16].fill(0);
        assert_eq!(foreign(7, &bytes), None);
        bytes[17] ^= 1;
        assert_eq!(foreign(7, &bytes), Some(&bytes[16..24]));
    }
}
