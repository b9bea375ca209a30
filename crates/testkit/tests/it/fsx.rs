//! fsx through the library, with four seeds.

use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_testkit::fsx::{Plan, exercise};
use holdfast_testkit::{effort, seed};

fn run(nth: u64) {
    let plan = Plan {
        seed: seed(1) + nth,
        operations: effort().of(30_000, 300_000),
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
