//! Tables with a row for each phase and a column for each target.

use crate::record::Record;
use crate::summary::median;
use std::fmt::Write as _;

/// The phases, in the order of their first records.
pub(crate) fn phases(records: &[Record]) -> Vec<&str> {
    let mut phases: Vec<&str> = Vec::new();
    for record in records {
        if !phases.contains(&record.phase.as_str()) {
            phases.push(&record.phase);
        }
    }
    phases
}

/// The median over rounds of what one cell's records tell; nothing if none does.
pub(crate) fn median_of(
    records: &[Record],
    phase: &str,
    target: &str,
    figure: impl Fn(&Record) -> Option<f64>,
) -> Option<f64> {
    let mine = |record: &&Record| record.phase == phase && record.target == target;
    let mut values: Vec<f64> = records.iter().filter(mine).filter_map(figure).collect();
    median(&mut values)
}

/// The rows as text, with columns as wide as their widest cell.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
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
    fn a_cell_is_the_median_of_its_own_records() {
        let record = |target, seconds| Record::sample(target, "stat", 1, seconds);
        let records = [
            record("a", 1.0),
            record("a", 9.0),
            record("a", 2.0),
            record("b", 7.0),
        ];
        let seconds = |target| median_of(&records, "stat", target, |one| Some(one.seconds));
        assert_eq!(
            (seconds("a"), seconds("b"), seconds("c")),
            (Some(2.0), Some(7.0), None)
        );
        assert_eq!(median_of(&records, "stat", "a", |one| one.idle), None);
        assert_eq!(phases(&records), ["stat"]);
        let rows = [
            vec!["x".to_owned(), "long".to_owned()],
            vec!["wide".to_owned(), "y".to_owned()],
        ];
        assert_eq!(aligned(&rows), "x     long\nwide  y\n");
    }
}
