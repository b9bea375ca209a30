//! The tables, in Markdown that reads well in a terminal too.

use std::fmt::Write;

use crate::class::{ALL, CLEAN, TWINS};
use crate::operation::{self, Operation};
use crate::placement::{Pair, Placement};
use crate::results::{Count, Results};
use crate::symbols::Symbols;

/// Places of the source that are named.
const BLAMED: usize = 25;
/// Pairs that are listed one by one.
const LISTED: usize = 60;

/// Totals by class and placement.
pub(crate) fn totals(results: &Results) -> String {
    let mut rows: Vec<(String, Count)> = Vec::new();
    if results.holds_all(&ALL) {
        rows.push((format!("**{}**", ALL.title), results.count(ALL.holds)));
        for placement in Placement::ALL {
            let count = results.count(|pair| pair.placement == placement);
            rows.push((placement.title().to_owned(), count));
        }
    }
    for class in CLEAN.iter().chain([&TWINS]) {
        if results.holds_all(class) {
            rows.push((class.title.to_owned(), results.count(class.holds)));
        }
    }
    if rows.is_empty() {
        rows.push(("the pairs chosen".to_owned(), results.count(|_| true)));
    }
    let mut text = String::from(
        "| pairs | tried | in conflict | of these, allocator only | in conflict even once | free |\n\
         |---|---|---|---|---|---|\n",
    );
    for (title, count) in rows {
        let Count {
            pairs,
            conflicting,
            allocator,
            ever,
        } = count;
        let free = percent(count.free());
        let _ = writeln!(
            text,
            "| {title} | {pairs} | {conflicting} | {allocator} | {ever} | {free} |"
        );
    }
    text
}

/// Never rounded up to 100.
fn percent(free: f64) -> String {
    format!("{:.1} %", (free * 10.0).floor() / 10.0)
}

/// All of it.
pub(crate) fn document(results: &Results, symbols: &mut Symbols) -> String {
    let mut text = totals(results);
    let (steps, calls) = results.recorded();
    let _ = writeln!(
        text,
        "\nA pair is in conflict if more than half of its {} repetitions are. \
         {steps} instructions were recorded, {calls} of them system calls.",
        results.repetitions
    );
    text += &failures(results);
    text += &blamed(results, symbols);
    text += &listed(results, symbols);
    for placement in Placement::ALL {
        text += &matrix(results, placement);
    }
    text
}

fn failures(results: &Results) -> String {
    let mut text = String::new();
    for (pair, why) in results.failures() {
        let _ = writeln!(
            text,
            "\n**Not tried:** {} ({}): {why}",
            pair.name(),
            pair.placement.word()
        );
    }
    text
}

fn blamed(results: &Results, symbols: &mut Symbols) -> String {
    let list = results.blamed(symbols);
    if list.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nWho writes to lines in conflict:\n\n| writes at | pairs | for instance | there the line is in |\n\
         |---|---|---|---|\n",
    );
    for entry in list.iter().take(BLAMED) {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            entry.who, entry.pairs, entry.example, entry.place
        );
    }
    if list.len() > BLAMED {
        let _ = writeln!(text, "\nand {} more places.", list.len() - BLAMED);
    }
    text
}

/// Every pair in conflict, if they are few.
fn listed(results: &Results, symbols: &mut Symbols) -> String {
    let count = results.conflicting().count();
    if count == 0 || count > LISTED {
        return String::new();
    }
    let mut text =
        String::from("\n| in conflict | where | repetitions | writes at |\n|---|---|---|---|\n");
    for (pair, outcome) in results.conflicting() {
        let Ok(report) = outcome else { continue };
        let mut writers: Vec<String> = Vec::new();
        for line in report.repetitions.iter().flatten() {
            for who in symbols.writers(&report.modules, line) {
                let who = format!("`{who}`");
                if !writers.contains(&who) {
                    writers.push(who);
                }
            }
        }
        let _ = writeln!(
            text,
            "| {} | {} | {}/{} | {} |",
            pair.name(),
            pair.placement.title(),
            report.conflicting(),
            report.repetitions.len(),
            writers.join(", ")
        );
    }
    text
}

/// One placement: each pair's repetitions in conflict.
fn matrix(results: &Results, placement: Placement) -> String {
    let here = |pair: &Pair| pair.placement == placement;
    let takes_part = |operation: &&Operation| {
        results.trials.iter().any(|(pair, _)| {
            here(pair) && pair.sides.iter().any(|side| side.name == operation.name)
        })
    };
    let operations: Vec<&Operation> = operation::all().filter(takes_part).collect();
    if operations.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nConflicts in {} repetitions, {} (`·`: none, `x`: not tried; columns in the order of the rows):\n\n```\n",
        results.repetitions,
        placement.title()
    );
    for (row, a) in operations.iter().enumerate() {
        let _ = write!(text, "{:>15} ", a.name);
        for b in &operations[..=row] {
            let cell = results.trials.iter().find(|(pair, _)| {
                here(pair) && pair.sides[0].name == b.name && pair.sides[1].name == a.name
            });
            let cell = match cell {
                None => " ".to_owned(),
                Some((_, Err(_))) => "x".to_owned(),
                Some((_, Ok(report))) => match report.conflicting() {
                    0 => "·".to_owned(),
                    some => some.to_string(),
                },
            };
            let _ = write!(text, "{cell:>2}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text += "```\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Line, Place, Report};

    fn results(conflicting: usize) -> Results {
        let line = Line {
            place: Place::Thread(1),
            same_bytes: true,
            sides: [Vec::new(), Vec::new()],
        };
        let report = Report {
            repetitions: (0..3)
                .map(|index| vec![line.clone(); usize::from(index < conflicting)])
                .collect(),
            ..Report::default()
        };
        let pairs = Pair::all().into_iter();
        Results {
            trials: pairs.map(|pair| (pair, Ok(report.clone()))).collect(),
            repetitions: 3,
        }
    }

    #[test]
    fn one_conflict_is_never_rounded_away() {
        assert_eq!(percent(100.0), "100.0 %");
        assert_eq!(percent(99.96), "99.9 %");
    }

    #[test]
    fn totals_tell_every_placement_and_class() {
        let text = totals(&results(0));
        for placement in Placement::ALL {
            assert!(text.contains(placement.title()), "{text}");
        }
        assert!(
            text.contains("100.0 %") && !text.contains(" 0.0 %"),
            "{text}"
        );
        let text = totals(&results(2));
        assert!(
            text.contains(" 0.0 %") && !text.contains("100.0 %"),
            "{text}"
        );
    }

    #[test]
    fn the_document_shows_every_pair_once() {
        let text = document(&results(2), &mut Symbols::default());
        assert!(text.matches(" 2").count() >= Pair::all().len());
        assert_eq!(text.matches("```").count(), 2 * Placement::ALL.len());
    }
}
