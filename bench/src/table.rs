//! The table at the end of a run.

use crate::mode::Mode;
use crate::record::Record;
use crate::summary::{self, Row, rate};
use std::fmt::Write as _;

/// The table of all records, and what there is to say beside it.
pub(crate) fn render(records: &[Record]) -> String {
    let rows = summary::rows(records);
    let width = |pick: fn(&Row<'_>) -> usize, least: usize| {
        rows.iter().map(pick).max().unwrap_or(0).max(least)
    };
    let phase_width = width(|row| row.phase.len(), 5);
    let target_width = width(|row| row.target.len(), 6);
    let judged = rows.iter().any(|row| row.scaling.is_some());
    let mut text = format!(
        "{:>7}  {:<phase_width$}  {:<target_width$}  {:>9}  {:>7}  {:>8}{}\n",
        "threads",
        "phase",
        "target",
        "median/s",
        "spread",
        "ratio",
        if judged { "  of processes" } else { "" }
    );
    for row in &rows {
        let _ = write!(
            text,
            "{:>7}  {:<phase_width$}  {:<target_width$}  {:>9}  {:>6.1}%  {:>8}",
            slots(row.mode),
            row.phase,
            row.target,
            rate(row.median),
            row.spread * 100.0,
            row.ratio
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"))
        );
        if let Some(scaling) = row.scaling {
            let _ = write!(text, "  {scaling:>12.3}");
        }
        text.push('\n');
    }
    if judged {
        text.push_str("2p: two independent processes of one thread each\n");
    }
    text.push_str(&beside(records));
    text
}

/// What there is to say below the table.
fn beside(records: &[Record]) -> String {
    let mut text = String::new();
    for kept in summary::kept(records) {
        let _ = writeln!(
            text,
            "{}, {}: readers keep {:.1}% of their speed beside {}",
            kept.target,
            kept.mode,
            kept.part * 100.0,
            kept.disturbance
        );
    }
    for written in summary::written(records) {
        let _ = write!(
            text,
            "{}, {}: {} at {:.1} MB/s",
            written.target,
            written.mode,
            written.phase,
            written.bytes / 1e6
        );
        if let Some(extents) = written.extents {
            let _ = write!(text, ", {extents:.0} extents per file");
        }
        if let Some(slope) = written.slope {
            let _ = write!(
                text,
                ", the last writes take {slope:.2} times as long as the first"
            );
        }
        text.push('\n');
    }
    for footprint in summary::footprints(records) {
        let _ = writeln!(
            text,
            "{} holds {:.0} bytes of resident memory per {}",
            footprint.target, footprint.bytes, footprint.thing
        );
    }
    text
}

fn slots(mode: Mode) -> String {
    match mode {
        Mode::Threads(count) => count.to_string(),
        Mode::Processes(count) => format!("{count}p"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_last_column_unless_processes_ran_too() {
        let threads = [
            Record::sample("mem:", "stat", 200, 1.0),
            Record::sample("dir:/x", "stat", 100, 1.0),
        ];
        let text = render(&threads);
        let fields: Vec<_> = text.lines().nth(1).expect("a row").split(' ').collect();
        assert_eq!(fields.last(), Some(&"2.00x"), "{text}");
        let both = [false, true].map(|alone| Record {
            threads: 2,
            processes: alone.then_some(2),
            ..Record::sample("mem:", "stat", 100, 1.0)
        });
        let text = render(&both);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].starts_with("      2  stat"), "{text}");
        assert!(lines[1].ends_with("1.00x         1.000"), "{text}");
        assert!(lines[2].starts_with("     2p  stat"), "{text}");
        assert!(lines[2].ends_with("1.00x"), "{text}");
    }

    #[test]
    fn what_one_takes_is_told_below() {
        let record = Record {
            rss_bytes_per_file: Some(270.4),
            ..Record::sample("mem:", "create", 1, 1.0)
        };
        let text = render(&[record]);
        let shown = "mem: holds 270 bytes of resident memory per file\n";
        assert!(text.ends_with(shown), "{text}");
    }
}
