//! Formatting of numbers, bytes and times.

/// A number with thousands separators.
pub(crate) fn number(value: u64) -> String {
    indicatif::HumanCount(value).to_string()
}

/// Bytes in a unit that leaves one to four digits before the point.
pub(crate) fn bytes(value: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut tenths = u128::from(value) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10240 {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

/// A duration in its two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// A time in a unit that leaves one to three digits before the point.
pub(crate) fn span(nanoseconds: u64) -> String {
    let tenths = |unit: u64| (nanoseconds / unit, nanoseconds % unit * 10 / unit);
    let (unit, (whole, part)) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => ("µs", tenths(1_000)),
        1_000_000..1_000_000_000 => ("ms", tenths(1_000_000)),
        _ => ("s", tenths(1_000_000_000)),
    };
    format!("{whole}.{part} {unit}")
}

/// A rate, or another fraction, in two to four digits.
pub(crate) fn rate(value: f64) -> String {
    let (scaled, unit) = match value {
        0.0..1e3 => (value, ""),
        1e3..1e6 => (value / 1e3, " k"),
        1e6..1e9 => (value / 1e6, " M"),
        1e9..1e12 => (value / 1e9, " G"),
        _ => return format!("{value:.0e}"),
    };
    let whole = unit.is_empty() && (scaled >= 10.0 || scaled.fract() == 0.0);
    format!("{scaled:.*}{unit}", usize::from(!whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bytes_and_durations_are_easy_to_read() {
        assert_eq!(
            [0, 999, 1000, 1234567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
        let sizes = [0, 1023, 1024, 1536, 1 << 20, (1 << 30) - 1, u64::MAX];
        let texts = [
            "0 B",
            "1023 B",
            "1.0 KiB",
            "1.5 KiB",
            "1.0 MiB",
            "1023.9 MiB",
            "15.9 EiB",
        ];
        assert_eq!(sizes.map(bytes), texts);
        let times = [59, 61, 3660, 90000].map(duration);
        assert_eq!(times, ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn spans_have_the_unit_that_fits() {
        let spans = [0, 999, 1000, 12_345, 3_100_000, 59_990_000_000].map(span);
        assert_eq!(
            spans,
            ["0 ns", "999 ns", "1.0 µs", "12.3 µs", "3.1 ms", "59.9 s"]
        );
    }

    #[test]
    fn rates_have_few_digits() {
        let rates = [0.0, 0.26, 4.0, 9.97, 123.4, 1234.0, 2.5e6, 7e9, 1e15, -1.0].map(rate);
        let texts = [
            "0", "0.3", "4", "10.0", "123", "1.2 k", "2.5 M", "7.0 G", "1e15", "-1e0",
        ];
        assert_eq!(rates, texts);
    }
}
