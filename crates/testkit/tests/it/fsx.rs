//! fsx through the library: four seeds, 300,000 operations each.
//!
//! `HOLDFAST_FSX_OPERATIONS` sets the number of operations, `HOLDFAST_FSX_SEED` the first seed.

use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_testkit::fsx::{Plan, exercise};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

fn run(nth: u64) {
    let plan = Plan {
        seed: number("HOLDFAST_FSX_SEED", 1) + nth,
        operations: number("HOLDFAST_FSX_OPERATIONS", 300_000) as usize,
        most: 256 * 1024,
        between_checks: 1000,
    };
    let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
    if let Err(report) = exercise(&fs, "fsx", &plan) {
        panic!("{report}");
    }
}

#[test]
fn every_byte_is_as_in_the_image_seed_1() {
    run(0);
}

#[test]
fn every_byte_is_as_in_the_image_seed_2() {
    run(1);
}

#[test]
fn every_byte_is_as_in_the_image_seed_3() {
    run(2);
}

#[test]
fn every_byte_is_as_in_the_image_seed_4() {
    run(3);
}
