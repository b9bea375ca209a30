//! The command line.

use super::{Settings, run};
use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;

/// Does random operations on file systems that are full
///
/// A failure names the seed that brings it back. Exit code 0: nothing went wrong; 1: something did; 2: the
/// arguments make no sense.
#[derive(Parser)]
#[command(name = "full")]
struct Arguments {
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = Settings::default().seed)]
    seed: u64,
    /// Operations in all
    #[arg(long, value_name = "N", default_value_t = Settings::default().operations)]
    operations: u64,
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let Arguments { seed, operations } = Arguments::parse();
    let settings = Settings { seed, operations };
    let began = Instant::now();
    println!("full: {settings:?}");
    match run(&settings, &|line| println!("{line}")) {
        Ok(summary) => {
            let seconds = began.elapsed().as_secs_f64();
            println!("full: {summary}; no failure; {seconds:.1} s");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("FAILED: {failure}");
            ExitCode::from(1)
        }
    }
}
