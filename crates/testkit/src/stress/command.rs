//! The command line.

use super::{Settings, run};
use crate::command::run_suite;
use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let mut settings = Settings::parse();
    if let Some(minutes) = settings.minutes {
        settings.time = minutes * 60;
    }
    let began = Instant::now();
    println!("stress: {settings:?}");
    let say = |line: &str| println!("{:7.1} s  {line}", began.elapsed().as_secs_f64());
    run_suite("stress", || run(&settings, &say), |_| true)
}
