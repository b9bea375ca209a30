//! The command line.

use super::{Settings, run};
use crate::command::run_suite;
use clap::Parser;
use std::process::ExitCode;

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let settings = Settings::parse();
    println!("full: {settings:?}");
    let say = |line: &str| println!("{line}");
    run_suite("full", || run(&settings, &say), |_| true)
}
