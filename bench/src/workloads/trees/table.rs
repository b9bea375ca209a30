//! The table of a run: seconds of each phase, and how many times the best rival's they are.

use crate::grid::{aligned, median_of, phases};
use crate::record::Record;
use std::fmt::Write as _;

/// A target's column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column<'c> {
    pub(super) label: &'c str,
    /// Is it held against the others?
    pub(super) ours: bool,
}

/// A row for each phase, in the order of the records.
pub(super) fn render(records: &[Record], columns: &[Column<'_>]) -> String {
    let rivals = columns.iter().any(|column| !column.ours);
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(columns.iter().map(|column| column.label.to_owned()));
    for phase in phases(records) {
        let best = columns.iter().filter(|column| !column.ours);
        let best = best.filter_map(|column| seconds(records, phase, column.label));
        let best = best.reduce(f64::min);
        let mut row = vec![phase.to_owned()];
        row.extend(
            columns
                .iter()
                .map(|column| cell(records, phase, *column, best)),
        );
        rows.push(row);
    }
    let mut text = aligned(&rows);
    text.push_str("seconds, medians of the rounds, and the processors' idle time");
    if rivals {
        text.push_str("; ours also as a multiple of the best of the others");
    }
    text.push_str("; r: requests for each file, directory or link that the phase is about\n");
    text
}

fn cell(records: &[Record], phase: &str, column: Column<'_>, best: Option<f64>) -> String {
    let Some(seconds) = seconds(records, phase, column.label) else {
        return "-".to_owned();
    };
    let mut text = format!("{seconds:.3}");
    if let Some(best) = best
        && column.ours
    {
        let _ = write!(text, " {:.2}x", seconds / best);
    }
    let value = |of: fn(&Record) -> Option<f64>| median_of(records, phase, column.label, of);
    if let Some(idle) = value(|record| record.idle) {
        let _ = write!(text, " {:.0}%", idle * 100.0);
    }
    if let Some(requests) = value(|record| Some(record.requests? as f64 / record.items as f64)) {
        let _ = write!(text, " {requests:.2}r");
    }
    text
}

fn seconds(records: &[Record], phase: &str, label: &str) -> Option<f64> {
    median_of(records, phase, label, |record| Some(record.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_a_multiple_of_the_best_of_the_others() {
        let record = |target, phase, seconds| Record {
            idle: Some(0.25),
            ..Record::sample(target, phase, 10, seconds)
        };
        let records = [
            Record {
                requests: Some(35),
                ..record("hf:x", "untar", 3.0)
            },
            record("ext4:x", "untar", 2.0),
            record("ext4:x", "untar", 1.0),
            record("ext4:x", "untar", 9.0),
            record("xfs:x", "untar", 1.5),
            record("hf:x", "du", 1.0),
        ];
        let columns = [("hf:x", true), ("ext4:x", false), ("xfs:x", false)];
        let columns = columns.map(|(label, ours)| Column { label, ours });
        let text = render(&records, &columns);
        let lines: Vec<&str> = text.lines().collect();
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let untar = [
            "untar", "3.000", "2.00x", "25%", "3.50r", "2.000", "25%", "1.500", "25%",
        ];
        assert_eq!(words(lines[1]), untar, "{text}");
        assert_eq!(words(lines[2]), ["du", "1.000", "25%", "-", "-"], "{text}");
        assert!(lines[0].find("ext4:x") == lines[1].find("2.000"), "{text}");
    }
}
