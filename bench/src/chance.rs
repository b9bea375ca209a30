//! Numbers that look like chance, and are the same in every run.

/// The number that follows from this one (`splitmix64`).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sequence of them.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    drawn: u64,
}

impl Chance {
    /// The sequence that begins here.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { drawn: mixed(seed) }
    }

    /// A number below this one, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        mixed(self.drawn) % end
    }

    /// A number of at least 0 and less than 1.
    pub(crate) fn part(&mut self) -> f64 {
        /// So many steps have all their bits in an `f64`.
        const STEPS: u64 = 1 << 53;
        self.below(STEPS) as f64 / STEPS as f64
    }
}

/// A file's name, of 24 bytes; neither their order nor their hashes' is that of the numbers.
pub(crate) fn name(number: u64) -> Vec<u8> {
    format!("{:016x}{number:08}", mixed(number)).into_bytes()
}

/// The number of a [`name`]; `None`: it is no such name.
pub(crate) fn number_of(text: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(text).ok()?.get(16..)?.parse().ok()?;
    (name(number) == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_number_and_others_tell_none() {
        for number in [0, 1, 99_999_999, 100_000_000, u64::MAX] {
            assert_eq!(number_of(&name(number)), Some(number));
        }
        for text in [
            &b""[..],
            b"x",
            b"000000000000000100000000",
            b"\xff\xff",
            "\u{e9}".repeat(12).as_bytes(),
        ] {
            assert_eq!(number_of(text), None, "{text:?}");
        }
        let mut changed = name(7);
        changed[0] ^= 1;
        assert_eq!(number_of(&changed), None);
    }

    #[test]
    fn a_seed_has_one_sequence_within_its_bounds() {
        let draw = |seed| {
            let mut chance = Chance::seeded(seed);
            (0..100).map(|_| chance.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..7).all(|number| draw(1).contains(&number)));
        let mut chance = Chance::seeded(3);
        let parts: Vec<f64> = (0..1000).map(|_| chance.part()).collect();
        assert!(parts.iter().all(|part| (0.0..1.0).contains(part)));
        let mean = parts.iter().sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
    }
}
