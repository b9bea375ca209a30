//! The table of a run: seconds of each phase, and how many times the best rival's they are.

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
    let mut phases: Vec<&str> = Vec::new();
    for record in records {
        if !phases.contains(&record.phase.as_str()) {
            phases.push(&record.phase);
        }
    }
    let rivals = columns.iter().any(|column| !column.ours);
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(columns.iter().map(|column| column.label.to_owned()));
    for phase in phases {
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
    text.push_str("; r: requests for each file, directory or link\n");
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
    let told = |of: fn(&Record) -> Option<f64>| {
        let mine = of_cell(records, phase, column.label);
        median(mine.filter_map(of).collect())
    };
    if let Some(idle) = told(|record| record.idle) {
        let _ = write!(text, " {:.0}%", idle * 100.0);
    }
    if let Some(requests) = told(|record| Some(record.requests? as f64 / record.items as f64)) {
        let _ = write!(text, " {requests:.2}r");
    }
    text
}

fn of_cell<'r>(
    records: &'r [Record],
    phase: &'r str,
    label: &'r str,
) -> impl Iterator<Item = &'r Record> {
    let mine = move |record: &&Record| record.phase == phase && record.target == label;
    records.iter().filter(mine)
}

fn seconds(records: &[Record], phase: &str, label: &str) -> Option<f64> {
    median(
        of_cell(records, phase, label)
            .map(|record| record.seconds)
            .collect(),
    )
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    crate::summary::median(&mut values)
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
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
