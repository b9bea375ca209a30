//! The table at the end of a run: medians over rounds, their spread, ratios between targets.

use crate::record::Record;
use std::fmt::Write as _;

/// Medians of one target in one phase.
#[derive(Debug, PartialEq)]
struct Row<'r> {
    threads: usize,
    phase: &'r str,
    target: &'r str,
    /// Items a second, the median over rounds.
    median: f64,
    /// Fastest less slowest, as a part of the median.
    spread: f64,
    /// The median over that of the last target.
    ratio: f64,
}

/// The table of all records.
pub(crate) fn render(records: &[Record]) -> String {
    let rows = rows(records);
    let width = |pick: fn(&Row<'_>) -> usize, least: usize| {
        rows.iter().map(pick).max().unwrap_or(0).max(least)
    };
    let phase_width = width(|row| row.phase.len(), 5);
    let target_width = width(|row| row.target.len(), 6);
    let mut text = format!(
        "{:>7}  {:<phase_width$}  {:<target_width$}  {:>9}  {:>7}  {:>8}\n",
        "threads", "phase", "target", "median/s", "spread", "ratio"
    );
    for row in &rows {
        let _ = writeln!(
            text,
            "{:>7}  {:<phase_width$}  {:<target_width$}  {:>9}  {:>6.1}%  {:>7.2}x",
            row.threads,
            row.phase,
            row.target,
            rate(row.median),
            row.spread * 100.0,
            row.ratio
        );
    }
    for (target, bytes) in memory(records) {
        let _ = writeln!(
            text,
            "{target} holds {bytes:.0} bytes of resident memory per file"
        );
    }
    text
}

/// By thread count, then phase, then target, each in the order of its first record.
fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let counts = distinct(records.iter().map(|record| record.threads));
    let phases = distinct(records.iter().map(|record| record.phase.as_str()));
    let targets = distinct(records.iter().map(|record| record.target.as_str()));
    let mut rows = Vec::new();
    for &threads in &counts {
        for &phase in &phases {
            let rates = |target: &str| -> Vec<f64> {
                let mine = |record: &&Record| {
                    (
                        record.threads,
                        record.phase.as_str(),
                        record.target.as_str(),
                    ) == (threads, phase, target)
                };
                records.iter().filter(mine).map(Record::rate).collect()
            };
            let reference = targets.last().and_then(|last| median(&mut rates(last)));
            for &target in &targets {
                let mut rates = rates(target);
                let Some(middle) = median(&mut rates) else {
                    continue;
                };
                rows.push(Row {
                    threads,
                    phase,
                    target,
                    median: middle,
                    spread: (rates[rates.len() - 1] - rates[0]) / middle,
                    ratio: reference.map_or(f64::NAN, |reference| middle / reference),
                });
            }
        }
    }
    rows
}

/// The largest growth by file of each target that tells it: what is promised is an upper bound,
/// and later rounds may find memory that earlier ones left.
fn memory(records: &[Record]) -> Vec<(&str, f64)> {
    let targets = distinct(records.iter().map(|record| record.target.as_str()));
    let largest = |target: &str| {
        let mine = records.iter().filter(|record| record.target == target);
        mine.filter_map(|record| record.rss_bytes_per_file)
            .reduce(f64::max)
    };
    targets
        .into_iter()
        .filter_map(|target| Some((target, largest(target)?)))
        .collect()
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Sorts the values; the middle one, or the mean of the two in the middle.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

/// Three digits and a unit.
fn rate(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e6 => (value / 1e6, " M"),
        value if value >= 1e3 => (value / 1e3, " k"),
        value => (value, ""),
    };
    let digits = match scaled {
        scaled if scaled >= 100.0 => 0,
        scaled if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_row_has_the_median_the_spread_and_the_ratio_to_the_last_target() {
        let records = [
            Record::of("mem:", "stat", 100, 1.0),
            Record::of("dir:/x", "stat", 10, 1.0),
            Record::of("mem:", "stat", 300, 1.0),
            Record::of("dir:/x", "stat", 30, 1.0),
            Record::of("mem:", "stat", 400, 2.0),
            Record::of("dir:/x", "stat", 40, 1.0),
        ];
        let rows = rows(&records);
        assert_eq!((rows[0].target, rows[1].target), ("mem:", "dir:/x"));
        assert!(
            close(rows[0].median, 200.0) && close(rows[1].median, 30.0),
            "{rows:?}"
        );
        assert!(
            close(rows[0].spread, 1.0) && close(rows[1].spread, 1.0),
            "{rows:?}"
        );
        assert!(
            close(rows[0].ratio, 200.0 / 30.0) && close(rows[1].ratio, 1.0),
            "{rows:?}"
        );
    }

    #[test]
    fn an_even_number_of_rounds_has_its_median_between_two() {
        assert!(close(median(&mut [4.0, 1.0, 3.0, 2.0]).expect("some"), 2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn rates_have_three_digits() {
        let shown: Vec<_> = [7.0, 812_345.0, 1_234_567.0, 47_500.0, 999.4]
            .map(rate)
            .into();
        assert_eq!(shown, ["7.00", "812 k", "1.23 M", "47.5 k", "999"]);
    }

    #[test]
    fn memory_per_file_is_the_largest_of_the_rounds() {
        let mut records = [10.0, 270.4, 250.0].map(|bytes| {
            let mut record = Record::of("mem:", "create", 1, 1.0);
            record.rss_bytes_per_file = Some(bytes);
            record
        });
        records[0].target = "dir:/x".to_owned();
        records[0].rss_bytes_per_file = None;
        let text = render(&records);
        assert!(text.contains("mem: holds 270 bytes"), "{text}");
        assert!(!text.contains("dir:/x holds"), "{text}");
    }
}
