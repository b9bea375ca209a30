//! The command line.

use super::{Settings, run};
use crate::command::run_suite;
use clap::Parser;
use std::process::ExitCode;

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::parse();
    println!("crash: {settings:?}");
    let say = |line: &str| println!("FAILED: {line}");
    run_suite(
        "crash",
        || run(&settings, &say),
        |summary| summary.failed == 0,
    )
}
