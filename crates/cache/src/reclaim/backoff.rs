//! Reclaims that are skipped because the ones before freed nothing.

/// The most skipped in a row.
const WAIT_MAX: u32 = 63;

/// How many of the next reclaims are skipped. All inodes may be in use, or the memory may be in
/// inodes and not in pages.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    left: u32,
    /// How many were skipped the last time.
    skipped: u32,
}

impl Backoff {
    /// Is this one to be skipped?
    pub(super) fn skips(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    pub(super) fn was_of_use(&mut self, was: bool) {
        self.skipped = match was {
            true => 0,
            false => (self.skipped * 2 + 1).min(WAIT_MAX),
        };
        self.left = self.skipped + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_no_use_come_less_often_until_one_is_of_use() {
        let mut backoff = Backoff::default();
        let mut looks = |of_use: bool, asked: u32| {
            let mut made = 0;
            for _ in 0..asked {
                if !backoff.skips() {
                    made += 1;
                    backoff.was_of_use(of_use);
                }
            }
            made
        };
        assert_eq!(looks(true, 100), 100);
        assert_eq!(looks(false, 1000), 6 + 1000 / 64 - 1);
        looks(true, 64);
        assert_eq!(looks(true, 100), 100);
    }
}
