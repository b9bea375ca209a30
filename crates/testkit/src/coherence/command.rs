//! The command.

use super::run::{Counts, Plan, run};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Changes a directory below its mount, and looks at it through that. Exit code 1: something was seen that was older than
/// promised, of another file, or an error.
#[derive(Parser)]
struct Arguments {
    /// An empty directory that is mounted
    #[arg(long)]
    source: PathBuf,
    /// Where it is mounted
    #[arg(long)]
    mount: PathBuf,
    /// An empty directory of the same file system as the source, and not below it
    #[arg(long)]
    aside: PathBuf,
    #[arg(long, default_value_t = 20_000)]
    changes: u64,
    #[arg(long, default_value_t = 8_000)]
    names: usize,
    #[arg(long, default_value_t = 3)]
    readers: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How old may be what is seen, in milliseconds
    #[arg(long, default_value_t = 1500)]
    limit: u64,
}

/// Runs the command.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = Plan {
        source: arguments.source,
        mount: arguments.mount,
        aside: arguments.aside,
        changes: arguments.changes,
        names: arguments.names,
        readers: arguments.readers,
        seed: arguments.seed,
        limit: Duration::from_millis(arguments.limit),
    };
    let begun = Instant::now();
    match run(&plan) {
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
