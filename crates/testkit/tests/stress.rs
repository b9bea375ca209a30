//! The stress test in its short form: five seconds over each store, of short rounds.
//! `HOLDFAST_STRESS_SECONDS` makes it longer, `HOLDFAST_STRESS_SEED` chooses what is asked for.

use holdfast_testkit::stress::{Base, Settings, run, sys::Counting};
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

fn holds_out(base: Base) {
    let settings = Settings {
        time: Duration::from_secs(number("HOLDFAST_STRESS_SECONDS", 5)),
        round: Duration::from_millis(400),
        threads: 8,
        seed: number("HOLDFAST_STRESS_SEED", 1),
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
