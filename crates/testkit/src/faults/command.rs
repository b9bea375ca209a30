//! The command line.

use super::{Settings, run};
use crate::command::run_suite;
use clap::Parser;
use std::process::ExitCode;

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::parse();
    println!("faults: {settings:?}");
    let say = |line: &str| println!("FAILED: {line}");
    run_suite(
        "faults",
        || run(&settings, &say),
        |summary| summary.wrong == 0,
    )
}
