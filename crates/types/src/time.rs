use std::cmp::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time from 1901-12-13 20:45:52 to 2486-07-02 20:20:25 (UTC): all that 64 bits of
/// nanoseconds hold.
///
/// The number is the nanoseconds since 1970, modulo 2^64: of all times with that number, the one in
/// this range. So times before 2262 are plain signed numbers, and [`Ord`] compares times, not
/// numbers. Times outside the range are clamped to its ends. The range is that of xfs with
/// `bigtime`, and contains that of ext4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Time(pub i64);

const NANOS: u32 = 1_000_000_000;

/// The first second of the range: that of signed 32-bit times.
const FIRST_SECOND: i64 = i32::MIN as i64;

impl Time {
    /// The beginning of the range.
    pub const EARLIEST: Self = Self(FIRST_SECOND * NANOS as i64);
    /// The end of the range.
    pub const LATEST: Self = Self(Self::EARLIEST.0.wrapping_sub(1));

    /// From seconds and nanoseconds (0 to 999,999,999), clamped to the range.
    #[must_use]
    pub const fn new(secs: i64, nanos: u32) -> Self {
        let since = secs as i128 - FIRST_SECOND as i128;
        let since = since * NANOS as i128 + nanos as i128;
        if since > u64::MAX as i128 {
            Self::LATEST
        } else if since < 0 {
            Self::EARLIEST
        } else {
            Self(Self::EARLIEST.0.wrapping_add(since as i64))
        }
    }

    /// Whole seconds since 1970, rounded towards the past.
    #[must_use]
    pub const fn secs(self) -> i64 {
        (self.since_earliest() / NANOS as u64) as i64 + FIRST_SECOND
    }

    /// Nanoseconds within the second: 0 to 999,999,999.
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        (self.since_earliest() % NANOS as u64) as u32
    }

    /// Nanoseconds since the range began.
    const fn since_earliest(self) -> u64 {
        self.0.wrapping_sub(Self::EARLIEST.0) as u64
    }
}

impl PartialOrd for Time {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.since_earliest().cmp(&other.since_earliest())
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let secs = |distance: Duration| i64::try_from(distance.as_secs()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::new(secs(after), after.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                match before.subsec_nanos() {
                    0 => Self::new(-secs(before), 0),
                    nanos => Self::new(-1 - secs(before), NANOS - nanos),
                }
            }
        }
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        let whole = Duration::from_secs(time.secs().unsigned_abs());
        let whole = match time.secs() {
            0.. => UNIX_EPOCH + whole,
            _ => UNIX_EPOCH - whole,
        };
        whole + Duration::from_nanos(time.subsec_nanos().into())
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
        assert_eq!(Time::new(i64::MAX, 0), Time::LATEST);
        assert_eq!(Time::new(i64::MIN, 5), Time::EARLIEST);
        assert_eq!(Time::new(FIRST_SECOND - 1, 999_999_999), Time::EARLIEST);
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(Time::from(far), Time::LATEST);
    }

    #[test]
    fn the_range_of_ext4_is_kept_in_order() {
        let seconds = [
            FIRST_SECOND,
            -1,
            0,
            1 << 32,
            9_223_372_036,
            9_223_372_037,
            15_032_385_535,
            16_299_260_424,
        ];
        let times = seconds.map(|secs| Time::new(secs, 7));
        assert!(times.is_sorted_by(|one, other| one < other));
        for (secs, time) in seconds.into_iter().zip(times) {
            assert_eq!((time.secs(), time.subsec_nanos()), (secs, 7));
            assert_eq!(Time::from(SystemTime::from(time)), time);
        }
        assert!(Time::LATEST.secs() > 15_032_385_535, "ext4's last second");
        assert_eq!(Time::new(0, 5).0, 5);
    }
}
