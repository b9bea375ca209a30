//! The library against the host kernel's tmpfs: seeded random operations, compared step by step.
//!
//! Needs root (a tmpfs of its own, other users' credentials) and says so where it is skipped.

use holdfast_testkit::diff::command::{Against, Arguments, run_seed};
use holdfast_testkit::diff::host::HostTarget;
use holdfast_testkit::skip::skipped;
use holdfast_testkit::{effort, seed};
use std::sync::Mutex;

/// Runs all seeds on two threads; panics with the reports of those that failed.
fn run_all(arguments: &Arguments) {
    if let Some(obstacle) = HostTarget::obstacle() {
        return skipped(&obstacle);
    }
    let seeds = Mutex::new(arguments.seed..arguments.seed + arguments.seeds);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = seeds.lock().unwrap().next();
                    let Some(seed) = next else { return };
                    if let Err(report) = run_seed(arguments, seed) {
                        reports.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}

#[test]
fn the_library_answers_as_the_kernel_does() {
    run_all(&Arguments {
        seed: seed(1),
        seeds: 4,
        steps: effort().of(2_500, 25_000),
        against: Against::Library,
        ..Arguments::default()
    });
}

/// If two tmpfs differ by the tester's measure, the measure is wrong.
#[test]
fn the_kernel_answers_as_itself() {
    run_all(&Arguments {
        seed: seed(1),
        seeds: 2,
        steps: effort().of(1_000, 10_000),
        against: Against::Host,
        ..Arguments::default()
    });
}
