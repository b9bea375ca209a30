//! A device that fails, under a volume: at each call of a sequence
//! ([`holdfast_testkit::crash::faults`]), and beside several threads
//! ([`holdfast_testkit::faults`]).

use holdfast_testkit::crash::faults;
use holdfast_testkit::faults::{Settings, run};
use holdfast_testkit::{effort, seed};

#[test]
fn a_device_that_fails_at_any_call_costs_nothing_that_was_durable() {
    let tried = faults(seed(1), 0, effort().of(2, 8)).unwrap();
    println!(
        "{} sequences, {} faults, {} told, {} failures",
        tried.sequences,
        tried.cases,
        tried.told,
        tried.failures.len()
    );
    let first: Vec<&String> = tried.failures.iter().take(10).collect();
    assert!(first.is_empty(), "{first:#?}");
    assert!(tried.told > tried.cases / 4);
}

#[test]
fn faults_beside_each_other_are_told_to_all_whom_they_concern_and_nothing_else_is_lost() {
    let settings = Settings {
        seed: seed(1),
        faults: effort().of(50, 500),
        ..Settings::default()
    };
    let summary = run(&settings, &|line| println!("{line}")).unwrap();
    println!("{summary}");
    assert_eq!(summary.wrong, 0, "{}", summary.failures.join("\n"));
    assert!(summary.faults >= settings.faults && summary.crowded > 0);
    assert!(summary.failed > summary.rounds / 4 && summary.promises > summary.rounds);
}
