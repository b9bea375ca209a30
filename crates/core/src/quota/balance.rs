//! The usage and the limits of one user or group, of bytes or of inodes.

use super::terms::QuotaLimit;
use crate::types::{Errno, Result, Time};

/// Usage and limits.
#[derive(Debug, Default)]
pub(super) struct Balance {
    pub(super) held: u64,
    pub(super) limit: QuotaLimit,
    /// When the soft limit becomes hard. There is one while usage exceeds it.
    pub(super) deadline: Option<Time>,
}

impl Balance {
    /// May `more` be charged?
    ///
    /// # Errors
    /// `EDQUOT` beyond the hard limit, or beyond the soft one after the deadline.
    pub(super) fn judge(&self, more: u64, now: Time) -> Result<()> {
        let then = self.held.saturating_add(more);
        let expired = self.deadline.is_some_and(|deadline| now >= deadline);
        let QuotaLimit { soft, hard } = self.limit;
        if more > 0 && (exceeds(then, hard) || exceeds(then, soft) && expired) {
            return Err(Errno::EDQUOT);
        }
        Ok(())
    }

    /// Begins a grace period up to `deadline`, or ends one, after a change of usage or limits.
    pub(super) fn update(&mut self, deadline: Time) {
        self.deadline = match exceeds(self.held, self.limit.soft) {
            true => self.deadline.or(Some(deadline)),
            false => None,
        };
    }
}

fn exceeds(held: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| held > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time(100);

    fn balance(held: u64, soft: Option<u64>, hard: Option<u64>) -> Balance {
        let mut balance = Balance {
            held,
            limit: QuotaLimit { soft, hard },
            deadline: None,
        };
        balance.update(NOON);
        balance
    }

    #[test]
    fn the_hard_limit_is_the_last_that_fits() {
        let empty = balance(0, None, Some(10));
        assert_eq!(empty.judge(10, NOON), Ok(()));
        assert_eq!(empty.judge(11, NOON), Err(Errno::EDQUOT));
        assert_eq!(empty.judge(u64::MAX, NOON), Err(Errno::EDQUOT));
        let full = balance(10, None, Some(10));
        assert_eq!((full.deadline, full.judge(0, NOON)), (None, Ok(())));
        assert_eq!(full.judge(1, NOON), Err(Errno::EDQUOT));
    }

    #[test]
    fn a_soft_limit_is_hard_from_its_deadline_on() {
        let mut balance = balance(5, Some(5), Some(10));
        assert_eq!(balance.deadline, None, "not exceeded yet");
        assert_eq!(balance.judge(1, NOON), Ok(()));
        balance.held = 6;
        balance.update(NOON);
        assert_eq!(balance.deadline, Some(NOON));
        let before = Time(99);
        assert_eq!(balance.judge(1, before), Ok(()));
        assert_eq!(balance.judge(5, before), Err(Errno::EDQUOT));
        assert_eq!(balance.judge(1, NOON), Err(Errno::EDQUOT));
        balance.held = 7;
        balance.update(Time(200));
        assert_eq!(balance.deadline, Some(NOON), "the first deadline stays");
        balance.held = 5;
        balance.update(Time(300));
        assert_eq!(balance.deadline, None);
        assert_eq!(balance.judge(1, NOON), Ok(()), "a new period");
    }

    #[test]
    fn new_limits_judge_what_is_held() {
        let mut balance = balance(8, Some(4), Some(20));
        assert_eq!(balance.deadline, Some(NOON));
        balance.limit = QuotaLimit {
            soft: Some(8),
            hard: Some(4),
        };
        balance.update(NOON);
        assert_eq!(balance.deadline, None);
        assert_eq!(balance.judge(1, NOON), Err(Errno::EDQUOT));
    }
}
