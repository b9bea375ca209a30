//! The crash test in its short form: all single steps, every 119th pair of them, and some random sequences.
//! `HOLDFAST_CRASH_STATES` and `HOLDFAST_CRASH_SEED` choose how many states are tried, and which.

use holdfast_testkit::crash::{Settings, run};

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[test]
fn a_crash_leaves_a_volume_as_it_was_at_some_moment() {
    let settings = Settings {
        seed: number("HOLDFAST_CRASH_SEED", 1),
        states: number("HOLDFAST_CRASH_STATES", 10_000),
        every: 119,
        ..Settings::default()
    };
    let summary = run(&settings, &|line| println!("{line}")).unwrap();
    println!("seed {}: {summary}", settings.seed);
    assert_eq!(summary.failed, 0, "{}", summary.failures.join("\n"));
    assert!(summary.states >= settings.states && summary.closely > 0);
}
