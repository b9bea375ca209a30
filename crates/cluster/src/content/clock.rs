//! The client's reading of the database's clock.

use holdfast_types::Time;
use parking_lot::Mutex;
use std::time::{Instant, SystemTime};

/// The time of the database when it was read last. Before that, the machine's own time.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Option<(Time, Instant)>>);

impl Clock {
    pub(super) fn set(&self, now: Time) {
        *self.0.lock() = Some((now, Instant::now()));
    }

    /// The time, later than `last`.
    pub(super) fn after(&self, last: Time) -> Time {
        let now = match *self.0.lock() {
            Some((time, at)) => {
                let gone = i64::try_from(at.elapsed().as_nanos()).unwrap_or(i64::MAX);
                Time(time.0.saturating_add(gone))
            }
            None => Time::from(SystemTime::now()),
        };
        now.max(Time(last.0.wrapping_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_also_when_the_database_is_behind() {
        let clock = Clock::default();
        clock.set(Time(1_000_000_000));
        let first = clock.after(Time(0));
        assert!(first.0 >= 1_000_000_000 && first.0 < 100_000_000_000);
        clock.set(Time(5));
        assert_eq!(clock.after(first), Time(first.0 + 1));
    }
}
