//! The command.

use super::run::{Counts, Plan, run};
use clap::Parser;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn main() -> ExitCode {
    let begun = Instant::now();
    match run(&Plan::parse()) {
        Ok(counts) => told(&counts, begun.elapsed()),
        Err(error) => {
            eprintln!("a change failed: {error}");
            ExitCode::from(2)
        }
    }
}

fn told(counts: &Counts, took: Duration) -> ExitCode {
    let wrong = counts.wrong.load(Relaxed);
    println!(
        "{} changes in {:.1} s, {} looks beside them, {} reads of open files, {} names checked at \
         rest: oldest seen {} ms, {wrong} wrong {:?}",
        counts.changes.load(Relaxed),
        took.as_secs_f64(),
        counts.looks.load(Relaxed),
        counts.reads_of_open.load(Relaxed),
        counts.checks.load(Relaxed),
        counts.oldest.load(Relaxed) / 1000,
        counts
            .told
            .lock()
            .iter()
            .map(|(done, names)| (done.as_str(), names.len()))
            .collect::<Vec<_>>(),
    );
    match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
