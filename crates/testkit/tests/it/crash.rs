//! The crash test in its short form: all single steps, every 119th pair of them, and some random
//! sequences.

use holdfast_testkit::crash::{Settings, run};
use holdfast_testkit::{effort, seed};

#[test]
fn a_crash_leaves_a_volume_as_it_was_at_some_moment() {
    let settings = Settings {
        seed: seed(1),
        states: effort().of(1_000, 10_000),
        every: 119,
        stride: effort().of(11, 1),
        ..Settings::default()
    };
    let summary = run(&settings, &|line| println!("{line}")).unwrap();
    println!("{summary}");
    assert_eq!(summary.failed, 0, "{}", summary.failures.join("\n"));
    assert!(summary.states >= settings.states && summary.closely > 0);
}
