//! A device that fails, under a volume: see [`holdfast_testkit::crash::faults`].
//! `HOLDFAST_FAULT_SEED` and `HOLDFAST_FAULT_SEQUENCES` choose what is tried.

use holdfast_testkit::crash::faults;

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
