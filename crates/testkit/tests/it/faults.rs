//! A device that fails, under a volume: at each call of a sequence ([`holdfast_testkit::crash::faults`]), and beside
//! several threads ([`holdfast_testkit::faults`]). `HOLDFAST_FAULT_SEED`, `HOLDFAST_FAULT_SEQUENCES` and
//! `HOLDFAST_FAULTS` choose what is tried.

use holdfast_testkit::crash::faults;
use holdfast_testkit::faults::{Settings, run};

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[test]
fn a_device_that_fails_at_any_call_costs_nothing_that_was_durable() {
    let seed = number("HOLDFAST_FAULT_SEED", 1);
    let tried = faults(seed, 0, number("HOLDFAST_FAULT_SEQUENCES", 8)).unwrap();
    println!(
        "seed {seed}: {} sequences, {} faults, {} told, {} failures",
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
        seed: number("HOLDFAST_FAULT_SEED", 1),
        faults: number("HOLDFAST_FAULTS", 500),
        ..Settings::default()
    };
    let summary = run(&settings, &|line| println!("{line}")).unwrap();
    println!("seed {}: {summary}", settings.seed);
    assert_eq!(summary.wrong, 0, "{}", summary.failures.join("\n"));
    assert!(summary.faults >= settings.faults && summary.crowded > 0);
    assert!(summary.failed > summary.rounds / 4 && summary.promises > summary.rounds);
}
