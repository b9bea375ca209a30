//! Reclaims that are left out because those before were of no use.

/// Left out in a row, at most.
const WAIT_MAX: u32 = 63;

/// How many of the next ones are left out: all inodes may be in use, or what is left may be what is known of files, not their bytes.
#[derive(Debug, Default)]
pub(super) struct Patience {
    left: u32,
    /// How many were left out the last time.
    waited: u32,
}

impl Patience {
    /// Is this one to be left out?
    pub(super) fn waits(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    pub(super) fn was_of_use(&mut self, was: bool) {
        self.waited = match was {
            true => 0,
            false => (self.waited * 2 + 1).min(WAIT_MAX),
        };
        self.left = self.waited + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_no_use_come_less_often_until_one_is_of_use() {
        let mut patience = Patience::default();
        let mut looks = |of_use: bool, asked: u32| {
            let mut made = 0;
            for _ in 0..asked {
                if !patience.waits() {
                    made += 1;
                    patience.was_of_use(of_use);
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
