//! The report of one pair: each line in conflict, and the functions that accessed it.

use std::fmt::Write;

use crate::placement::Pair;
use crate::report::{Line, Place};
use crate::results::Results;
use crate::symbols::Symbols;

/// Lines of one kind: the same people in the same sort of memory.
#[derive(PartialEq, Eq)]
struct Kind {
    place: String,
    same_bytes: bool,
    /// The functions that accessed the line, each with its role.
    who: Vec<(String, Role)>,
}

/// How a function accessed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Role {
    /// On the first and on the second thread.
    sides: [bool; 2],
    write: bool,
}

/// Tells of every pair in turn.
pub(crate) fn text(results: &Results, symbols: &mut Symbols) -> String {
    let mut text = String::new();
    for (pair, outcome) in &results.trials {
        let _ = writeln!(text, "{}, {}", pair.name(), pair.placement.title());
        let report = match outcome {
            Ok(report) => report,
            Err(why) => {
                let _ = writeln!(text, "  could not be tried: {why}\n");
                continue;
            }
        };
        let repetitions = report.repetitions.len();
        let _ = writeln!(
            text,
            "  {} of {repetitions} repetitions in conflict; {} instructions an operation; \
             {} and {} system calls",
            report.conflicting(),
            report.steps / (2 * repetitions.max(1) as u64),
            report.system_calls[0],
            report.system_calls[1]
        );
        let mut kinds: Vec<(Kind, u32, String)> = Vec::new();
        for line in report.repetitions.iter().flatten() {
            let kind = Kind::of(line, &report.modules, symbols);
            match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, times, _)) => *times += 1,
                None => kinds.push((kind, 1, place_in_block(line))),
            }
        }
        kinds.sort_by_key(|&(_, times, _)| std::cmp::Reverse(times));
        for (kind, times, at) in kinds {
            let how = if kind.same_bytes {
                ""
            } else {
                ", in different bytes"
            };
            let _ = writeln!(text, "  {times} lines{how}: {}{at}", kind.place);
            text += &kind.people(pair);
        }
        text.push('\n');
    }
    text
}

impl Kind {
    fn of(line: &Line, modules: &[String], symbols: &mut Symbols) -> Self {
        let mut who: Vec<(String, Role)> = Vec::new();
        for (side, touches) in line.sides.iter().enumerate() {
            for touch in touches {
                let name = symbols.who(modules, touch);
                let known = who.iter().position(|(known, _)| *known == name);
                let index = known.unwrap_or_else(|| {
                    let role = Role {
                        sides: [false; 2],
                        write: false,
                    };
                    who.push((name, role));
                    who.len() - 1
                });
                let role = &mut who[index].1;
                role.sides[side] = true;
                role.write |= touch.write;
            }
        }
        who.sort_by_key(|(_, role)| !role.write);
        Self {
            place: symbols.place(modules, line),
            same_bytes: line.same_bytes,
            who,
        }
    }

    fn people(&self, pair: &Pair) -> String {
        let mut text = String::new();
        for (who, role) in &self.who {
            let subject = match role.sides {
                [true, true] => "both".to_owned(),
                [true, false] => format!("first ({})", pair.sides[0].name),
                _ => format!("second ({})", pair.sides[1].name),
            };
            let verb = if role.write { "write" } else { "read" };
            let _ = writeln!(text, "      {subject} {verb}: {who}");
        }
        text
    }
}

/// The bytes that are written, counted from the start of the block.
fn place_in_block(line: &Line) -> String {
    let Place::Heap(blocks) = &line.place else {
        return String::new();
    };
    let [block] = blocks.as_slice() else {
        return String::new();
    };
    let touches = line.sides.iter().flatten();
    let mut written: Vec<(i64, i64)> = touches
        .filter(|touch| touch.write)
        .map(|touch| {
            let (first, last) = touch.bytes;
            (
                block.offset + i64::from(first),
                block.offset + i64::from(last) + 1,
            )
        })
        .collect();
    written.sort_unstable();
    written.dedup();
    let ranges: Vec<String> = written
        .iter()
        .map(|(start, end)| format!("{start}..{end}"))
        .collect();
    format!(", bytes {}", ranges.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Block, Report, Touch};

    #[test]
    fn those_who_do_the_same_are_named_once() {
        let touch = |write| Touch {
            calls: Vec::new(),
            write,
            allocating: false,
            bytes: (8, 15),
        };
        let line = Line {
            place: Place::Heap(vec![Block {
                size: 360,
                offset: 64,
                calls: Vec::new(),
            }]),
            same_bytes: true,
            sides: [vec![touch(true)], vec![touch(false)]],
        };
        let results = Results {
            trials: vec![(
                Pair::all()[0],
                Ok(Report {
                    repetitions: vec![vec![line.clone()], vec![line], Vec::new()],
                    ..Report::default()
                }),
            )],
            repetitions: 3,
        };
        let text = text(&results, &mut Symbols::default());
        assert!(text.contains("2 of 3 repetitions"), "{text}");
        assert!(text.contains("2 lines: heap block of 360 bytes"), "{text}");
        assert!(
            text.contains("bytes 72..80\n      both write: unknown code"),
            "{text}"
        );
    }
}
