//! The hash of names in the trees.

use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;

/// Hashes names with the volume's secret seed, so that collisions cannot be crafted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHasher {
    seed: u64,
}

impl NameHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A name's hash: SipHash-1-3 with the seed as both halves of the key, its lower 32 bits.
    pub(crate) fn hash(&self, name: &[u8]) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, !self.seed);
        hasher.write(name);
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_part_of_the_format() {
        let hasher = NameHasher::new(0x0123_4567_89ab_cdef);
        assert_eq!(hasher.hash(b"name"), 98_861_119);
        assert_ne!(hasher.hash(b"name"), NameHasher::new(1).hash(b"name"));
    }
}
