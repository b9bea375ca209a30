//! What a run of many pairs found, counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::class::Class;
use crate::placement::Pair;
use crate::runner::Outcome;
use crate::symbols::Symbols;

/// Pairs and what became of them.
pub(crate) struct Results {
    pub(crate) trials: Vec<(Pair, Outcome)>,
    pub(crate) repetitions: usize,
}

/// A class of pairs, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) pairs: usize,
    /// More than half of the repetitions conflict, or the pair could not be tried.
    pub(crate) conflicting: usize,
    /// Of these, all lines are the allocator's.
    pub(crate) allocator: usize,
    /// At least one repetition conflicts.
    pub(crate) ever: usize,
}

impl Count {
    /// Hundredths of pairs without conflict.
    pub(crate) fn free(&self) -> f64 {
        let free = self.pairs - self.conflicting;
        100.0 * free as f64 / self.pairs.max(1) as f64
    }
}

/// A place in the source that writes to lines in conflict.
pub(crate) struct Blamed {
    pub(crate) who: String,
    /// Conflicting pairs with such a line.
    pub(crate) pairs: usize,
    /// The first of them.
    pub(crate) example: String,
    /// What memory it was there.
    pub(crate) place: String,
}

impl Results {
    /// Counts the pairs of a class.
    pub(crate) fn count(&self, holds: impl Fn(&Pair) -> bool) -> Count {
        let mut count = Count::default();
        for (_, outcome) in self.trials.iter().filter(|(pair, _)| holds(pair)) {
            count.pairs += 1;
            let Ok(report) = outcome else {
                count.conflicting += 1;
                count.ever += 1;
                continue;
            };
            count.ever += usize::from(report.conflicting() > 0);
            if report.conflicts() {
                count.conflicting += 1;
                count.allocator += usize::from(report.only_allocator());
            }
        }
        count
    }

    /// Does the run hold every pair of the class, so that its count means something?
    pub(crate) fn holds_all(&self, class: &Class) -> bool {
        let wanted = Pair::all().into_iter().filter(class.holds).count();
        self.count(class.holds).pairs == wanted
    }

    /// Pairs that could not be tried, and why.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Pair, &str)> {
        self.trials
            .iter()
            .filter_map(|(pair, outcome)| Some((pair, outcome.as_ref().err()?.as_str())))
    }

    /// Pairs in conflict.
    pub(crate) fn conflicting(&self) -> impl Iterator<Item = &(Pair, Outcome)> {
        self.trials.iter().filter(|(_, outcome)| !is_free(outcome))
    }

    /// The functions that write to lines in conflict, those with the most pairs first.
    pub(crate) fn blamed(&self, symbols: &mut Symbols) -> Vec<Blamed> {
        let mut blamed: BTreeMap<String, Blamed> = BTreeMap::new();
        for (pair, outcome) in self.conflicting() {
            let Ok(report) = outcome else { continue };
            let mut counted = BTreeSet::new();
            for line in report.repetitions.iter().flatten() {
                for who in symbols.writers(&report.modules, line) {
                    let who = without_lines(&who);
                    if !counted.insert(who.clone()) {
                        continue;
                    }
                    let entry = blamed.entry(who.clone()).or_insert_with(|| Blamed {
                        who,
                        pairs: 0,
                        example: format!("{} ({})", pair.name(), pair.placement.word()),
                        place: symbols.place(&report.modules, line),
                    });
                    entry.pairs += 1;
                }
            }
        }
        let mut list: Vec<Blamed> = blamed.into_values().collect();
        list.sort_by_key(|entry| std::cmp::Reverse(entry.pairs));
        list
    }

    /// Instructions recorded, and system calls seen among them.
    pub(crate) fn recorded(&self) -> (u64, u64) {
        let reports = self
            .trials
            .iter()
            .filter_map(|(_, outcome)| outcome.as_ref().ok());
        reports.fold((0, 0), |(steps, calls), report| {
            let more: u64 = report.system_calls.iter().sum();
            (steps + report.steps, calls + more)
        })
    }
}

/// Was the pair tried, and does it not conflict?
pub(crate) fn is_free(outcome: &Outcome) -> bool {
    outcome.as_ref().is_ok_and(|report| !report.conflicts())
}

/// The same functions and files: the lines of one function share the blame.
fn without_lines(who: &str) -> String {
    let words = who.split(' ').map(|word| match word.rsplit_once(".rs:") {
        Some((file, line)) if line.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("{file}.rs")
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Line, Place, Report, Touch};

    fn report(conflicting: usize, allocating: bool) -> Report {
        let touch = Touch {
            calls: Vec::new(),
            write: true,
            allocating,
            bytes: (0, 7),
        };
        let line = Line {
            place: Place::Unknown,
            same_bytes: true,
            sides: [vec![touch.clone()], vec![touch]],
        };
        let repetition = |index| vec![line.clone(); usize::from(index < conflicting)];
        Report {
            repetitions: (0..3).map(repetition).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn the_lines_of_a_function_share_the_blame() {
        let who = "store sync/src/slot.rs:129 for insert core/src/directory.rs:247 (allocator)";
        let wanted = "store sync/src/slot.rs for insert core/src/directory.rs (allocator)";
        assert_eq!(without_lines(who), wanted);
    }

    #[test]
    fn a_pair_that_could_not_be_tried_is_no_success() {
        let pairs = Pair::all();
        let outcomes = [
            Ok(report(0, false)),
            Ok(report(1, false)),
            Ok(report(3, true)),
            Err("no".to_owned()),
        ];
        let results = Results {
            trials: pairs.into_iter().zip(outcomes).collect(),
            repetitions: 3,
        };
        let count = results.count(|_| true);
        let wanted = Count {
            pairs: 4,
            conflicting: 2,
            allocator: 1,
            ever: 3,
        };
        assert_eq!(count, wanted);
        assert!((count.free() - 50.0).abs() < 1e-9);
        assert_eq!(results.failures().count(), 1);
        assert!(!results.holds_all(&crate::class::ALL));
    }
}
