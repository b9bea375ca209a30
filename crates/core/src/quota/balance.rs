//! What one user or group holds of one thing, and the rules for holding more.
//!
//! Plain arithmetic: a balance lives under its record's lock.

use super::terms::{Check, NONE};
use crate::types::{Errno, Result, Time};

/// What is held of one thing, and its limits.
#[derive(Debug)]
pub(super) struct Balance {
    /// What is in use, and what cores have borrowed and not used.
    pub(super) held: u64,
    soft: u64,
    hard: u64,
    /// From when on the soft limit is hard. There is one only while the soft limit is exceeded.
    deadline: Option<Time>,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            held: 0,
            soft: NONE,
            hard: NONE,
            deadline: None,
        }
    }
}

impl Balance {
    /// How much can be charged before any limit has a say.
    pub(super) fn room(&self) -> u64 {
        self.soft.min(self.hard).saturating_sub(self.held)
    }

    /// May `more` be charged?
    ///
    /// # Errors
    /// `EDQUOT` beyond the hard limit, or beyond the soft one after the deadline.
    pub(super) fn judge(&self, more: u64, check: Check, now: Time) -> Result<()> {
        if check == Check::Nothing || more <= self.room() {
            return Ok(());
        }
        let then = self.held.saturating_add(more);
        let lazytime = self.deadline.is_some_and(|deadline| now >= deadline);
        if then > self.hard || then > self.soft && lazytime {
            return Err(Errno::EDQUOT);
        }
        Ok(())
    }

    /// Charges what was judged; exceeding the soft limit sets a deadline.
    pub(super) fn add(&mut self, more: u64, deadline: impl FnOnce() -> Time) {
        self.held = self.held.saturating_add(more);
        self.watch(deadline);
    }

    /// Gives back what was charged. Within the soft limit there is no deadline any more.
    pub(super) fn subtract(&mut self, less: u64) {
        debug_assert!(less <= self.held, "more released than was charged");
        self.held = self.held.saturating_sub(less);
        if self.held <= self.soft {
            self.deadline = None;
        }
    }

    /// Other limits, from now on; what is held stays, even beyond them.
    pub(super) fn limit(&mut self, (soft, hard): (u64, u64), deadline: impl FnOnce() -> Time) {
        (self.soft, self.hard) = (soft, hard);
        self.watch(deadline);
    }

    fn watch(&mut self, deadline: impl FnOnce() -> Time) {
        if self.held <= self.soft {
            self.deadline = None;
        } else if self.deadline.is_none() {
            self.deadline = Some(deadline());
        }
    }

    /// Soft and hard limit.
    pub(super) fn bounds(&self) -> (u64, u64) {
        (self.soft, self.hard)
    }

    /// From when on the soft limit is hard, if it is exceeded.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(soft: u64, hard: u64) -> Balance {
        let mut balance = Balance::default();
        balance.limit((soft, hard), || unreachable!("nothing is held"));
        balance
    }

    const NOON: Time = Time(100);

    #[test]
    fn the_hard_limit_is_the_last_that_fits() {
        let mut balance = balance(NONE, 10);
        assert_eq!(balance.judge(10, Check::Limits, NOON), Ok(()));
        assert_eq!(balance.judge(11, Check::Limits, NOON), Err(Errno::EDQUOT));
        assert_eq!(
            balance.judge(u64::MAX, Check::Limits, NOON),
            Err(Errno::EDQUOT)
        );
        balance.add(10, || NOON);
        assert_eq!((balance.room(), balance.deadline()), (0, None));
        assert_eq!(balance.judge(0, Check::Limits, NOON), Ok(()));
        assert_eq!(balance.judge(1, Check::Nothing, NOON), Ok(()));
    }

    #[test]
    fn a_soft_limit_is_hard_from_its_deadline_on() {
        let mut balance = balance(5, 10);
        balance.add(5, || unreachable!("not exceeded yet"));
        assert_eq!(balance.judge(1, Check::Limits, NOON), Ok(()));
        balance.add(1, || NOON);
        assert_eq!(balance.deadline(), Some(NOON));
        let (before, after) = (Time(99), NOON);
        assert_eq!(balance.judge(1, Check::Limits, before), Ok(()));
        assert_eq!(balance.judge(5, Check::Limits, before), Err(Errno::EDQUOT));
        assert_eq!(balance.judge(1, Check::Limits, after), Err(Errno::EDQUOT));
        assert_eq!(balance.judge(1, Check::Nothing, after), Ok(()));
        balance.add(1, || unreachable!("the first deadline stands"));
        balance.subtract(2);
        assert_eq!(balance.deadline(), None);
        assert_eq!(
            balance.judge(1, Check::Limits, after),
            Ok(()),
            "a new period"
        );
    }

    #[test]
    fn new_limits_judge_what_is_held() {
        let mut balance = balance(NONE, NONE);
        balance.add(8, || unreachable!("no limit"));
        balance.limit((4, 20), || NOON);
        assert_eq!((balance.room(), balance.deadline()), (0, Some(NOON)));
        balance.limit((8, 4), || unreachable!("within the soft limit"));
        assert_eq!(balance.deadline(), None);
        assert_eq!(balance.judge(1, Check::Limits, NOON), Err(Errno::EDQUOT));
        assert_eq!(balance.bounds(), (8, 4));
    }
}
