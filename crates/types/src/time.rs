use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: nanoseconds since 1970 in 64 bits (years 1677 to 2262).
///
/// Times outside that range are clamped to its ends, as file systems with a bounded range do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

const NANOS: i64 = 1_000_000_000;

impl Time {
    /// From seconds and nanoseconds (0 to 999,999,999), clamped to the range.
    #[must_use]
    pub const fn new(secs: i64, nanos: u32) -> Self {
        let whole = secs as i128 * NANOS as i128 + nanos as i128;
        if whole > i64::MAX as i128 {
            Self(i64::MAX)
        } else if whole < i64::MIN as i128 {
            Self(i64::MIN)
        } else {
            Self(whole as i64)
        }
    }

    /// Whole seconds, rounded towards the past.
    #[must_use]
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(NANOS)
    }

    /// Nanoseconds within the second: 0 to 999,999,999.
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        self.0.rem_euclid(NANOS) as u32
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX)),
            Err(before) => {
                Self(i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos))
            }
        }
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        let distance = Duration::from_nanos(time.0.unsigned_abs());
        if time.0 >= 0 {
            UNIX_EPOCH + distance
        } else {
            UNIX_EPOCH - distance
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_positive_nanoseconds() {
        let time = Time::new(-2, 999_999_999);
        assert_eq!((time.secs(), time.subsec_nanos()), (-2, 999_999_999));
        assert_eq!(Time::from(SystemTime::from(time)), time);
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        assert_eq!(Time::new(i64::MAX, 0).0, i64::MAX);
        assert_eq!(Time::new(i64::MIN, 5).0, i64::MIN);
    }
}
