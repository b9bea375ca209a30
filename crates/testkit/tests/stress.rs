//! The stress test in its short form: a second over each store, of short rounds.

use holdfast_testkit::stress::{Base, Settings, run, sys::Counting};
use holdfast_testkit::{effort, seed};
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

fn holds_out(base: Base) {
    let settings = Settings {
        minutes: None,
        time: Duration::from_secs(effort().of(1, 5)),
        round: Duration::from_millis(effort().of(200, 400)),
        threads: 8,
        seed: seed(1),
        base,
    };
    match run(&settings, &|line| println!("{line}")) {
        Ok(summary) => {
            println!("{summary}");
            assert!(summary.revoked > 0 && summary.revoked < summary.rounds);
        }
        Err(trouble) => panic!("{trouble}"),
    }
}

/// One after the other: they count what waits for a grace period, which is the process's.
#[test]
fn file_systems_hold_out_and_leave_nothing_behind() {
    holds_out(Base::Memory);
    holds_out(Base::Model);
    holds_out(Base::Volume);
}
