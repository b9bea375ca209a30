//! Comparing what was counted with the constants.

use anyhow::Result;
use std::process::ExitCode;

use crate::class::{ALL, CLEAN, Class, TWINS};
use crate::expected::{Expected, Verdict};
use crate::placement::Pair;
use crate::results::{Results, is_free};
use crate::runner::Outcome;
use crate::store::StoreKind;
use crate::symbols::Symbols;

/// How often a pair that makes its class grow is repeated: with the first run, a majority decides.
const AGAIN: usize = 2;

fn classes() -> impl Iterator<Item = &'static Class> {
    CLEAN.iter().chain([&TWINS, &ALL])
}

/// Repeats the pairs in conflict of each class that has grown, each in a new process, at most
/// [`AGAIN`] times. A pair is free if none of the repetitions shows a conflict. All rounds of one
/// process may share a line by chance of placement, so the majority of the processes decides.
///
/// # Errors
/// When `run` cannot try pairs at all.
pub(crate) fn try_again(
    results: &mut Results,
    expected: &Expected,
    store: StoreKind,
    mut run: impl FnMut(&[Pair]) -> Result<Vec<Outcome>>,
) -> Result<()> {
    let mut free: Vec<(usize, Outcome)> = suspects(results, expected, store)
        .into_iter()
        .map(|index| (index, results.trials[index].1.clone()))
        .collect();
    for _ in 0..AGAIN {
        let pairs: Vec<Pair> = free
            .iter()
            .map(|&(index, _)| results.trials[index].0)
            .collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let tried = free.into_iter().zip(run(&pairs)?);
        free = tried
            .map(|((index, _), outcome)| (index, outcome))
            .filter(|(_, outcome)| is_free(outcome))
            .collect();
    }
    for (index, outcome) in free {
        let (pair, before) = &mut results.trials[index];
        let shown = match &*before {
            Ok(report) => format!("{} rounds in conflict", report.conflicting()),
            Err(why) => why.clone(),
        };
        let (name, placement) = (pair.name(), pair.placement.word());
        println!("{name} ({placement}): free when tried again twice, before: {shown}");
        *before = outcome;
    }
    Ok(())
}

/// Those in conflict of classes that have grown: indices of trials.
fn suspects(results: &Results, expected: &Expected, store: StoreKind) -> Vec<usize> {
    let grown: Vec<&Class> = classes()
        .filter(|class| results.holds_all(class))
        .filter(|class| {
            let count = results.count(class.holds).conflicting;
            matches!(
                expected.judge(&store.class(class.word), count),
                Verdict::Grown(_)
            )
        })
        .collect();
    let trials = results.trials.iter().enumerate();
    trials
        .filter(|(_, (pair, outcome))| {
            !is_free(outcome) && grown.iter().any(|class| (class.holds)(pair))
        })
        .map(|(index, _)| index)
        .collect()
}

/// Compares what was counted with the constants. A class without a constant is only printed.
pub(crate) fn compare(
    results: &Results,
    expected: &Expected,
    store: StoreKind,
    symbols: &mut Symbols,
) -> ExitCode {
    println!("\nCompared with the constants:\n");
    let mut good = true;
    for class in classes().filter(|class| results.holds_all(class)) {
        let count = results.count(class.holds).conflicting;
        match expected.judge(&store.class(class.word), count) {
            Verdict::Same => println!("{}: {count}, as expected", class.word),
            Verdict::Shrunk(count) => {
                println!("{}: only {count} left: lower the constant", class.word);
            }
            Verdict::Grown(constant) => {
                println!(
                    "{}: {count} in conflict, at most {constant} may be",
                    class.word
                );
                let grown = results
                    .conflicting()
                    .filter(|(pair, _)| (class.holds)(pair));
                for (pair, _) in grown {
                    println!("  {} ({})", pair.name(), pair.placement.word());
                }
                good = false;
            }
            Verdict::Unknown => println!("{}: {count}, without a constant", class.word),
        }
    }
    for (pair, why) in results.failures() {
        println!("{} ({}) failed: {why}", pair.name(), pair.placement.word());
        good = false;
    }
    if good {
        return ExitCode::SUCCESS;
    }
    for blamed in results.blamed(symbols).iter().take(10) {
        println!(
            "{} pairs: {} writes to {}",
            blamed.pairs, blamed.who, blamed.place
        );
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Line, Place, Report};

    fn report(conflict: bool) -> Outcome {
        let line = Line {
            place: Place::Unknown,
            same_bytes: true,
            sides: [Vec::new(), Vec::new()],
        };
        Ok(Report {
            repetitions: vec![vec![line; usize::from(conflict)]; 3],
            ..Report::default()
        })
    }

    /// Twins, of which the first two conflict and the third cannot be tried; the outcomes of the
    /// next tries.
    fn after(nexts: [Vec<bool>; 2]) -> Result<(usize, Vec<usize>)> {
        let twins = Pair::all().into_iter().filter(TWINS.holds);
        let first = |index| match index {
            0 | 1 => report(true),
            2 => Err("not done".to_owned()),
            _ => report(false),
        };
        let mut results = Results {
            trials: twins
                .enumerate()
                .map(|(i, pair)| (pair, first(i)))
                .collect(),
            repetitions: 3,
        };
        let mut tried = Vec::new();
        let mut nexts = nexts.into_iter();
        let expected = Expected::parse("reading 0\nmaking 0\nwriting 0\ntwins 1\nall 1")?;
        try_again(&mut results, &expected, StoreKind::Memory, |pairs| {
            tried.push(pairs.len());
            Ok(nexts.next().into_iter().flatten().map(report).collect())
        })?;
        Ok((results.count(TWINS.holds).conflicting, tried))
    }

    #[test]
    fn who_conflicts_in_one_process_of_three_is_free() -> Result<()> {
        let (left, tried) = after([vec![true, false, false], vec![false, false]])?;
        assert_eq!((left, tried), (1, vec![3, 2]));
        Ok(())
    }

    #[test]
    fn who_conflicts_in_two_processes_of_three_does() -> Result<()> {
        let (left, tried) = after([vec![true, true, true], vec![]])?;
        assert_eq!((left, tried), (3, vec![3]));
        let (left, tried) = after([vec![true, false, false], vec![true, false]])?;
        assert_eq!((left, tried), (2, vec![3, 2]));
        Ok(())
    }
}
