//! What the command lines of the suites share.

use std::fmt::Display;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// A number of milliseconds.
pub(crate) fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// Runs a suite, and tells how it ended. `is_good` judges the summary.
pub(crate) fn run_suite<S: Display>(
    name: &str,
    run: impl FnOnce() -> Result<S, String>,
    is_good: impl FnOnce(&S) -> bool,
) -> ExitCode {
    let began = Instant::now();
    match run() {
        Ok(summary) => {
            println!("{name}: {summary}; {:.1} s", began.elapsed().as_secs_f64());
            ExitCode::from(u8::from(!is_good(&summary)))
        }
        Err(trouble) => {
            println!("{name}: FAILED: {trouble}");
            ExitCode::FAILURE
        }
    }
}
