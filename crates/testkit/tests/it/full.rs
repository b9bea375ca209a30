//! Full file systems: 50,000 operations.
//!
//! `HOLDFAST_FULL_OPERATIONS` sets the number of operations, `HOLDFAST_FULL_SEED` the first seed.

use holdfast_testkit::full::{Settings, run};

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[test]
fn a_full_file_system_refuses_what_has_no_room_and_nothing_else_fails() {
    let settings = Settings {
        seed: number("HOLDFAST_FULL_SEED", 1),
        operations: number("HOLDFAST_FULL_OPERATIONS", 50_000),
    };
    match run(&settings, &|line| println!("{line}")) {
        Ok(summary) => assert!(summary.refused > settings.operations / 100, "{summary}"),
        Err(failure) => panic!("{failure}"),
    }
}
