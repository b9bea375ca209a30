//! Designs that were replaced.

use super::{number, records, run, subject};
use serde_json::Value;

#[test]
fn baselines_run_beside_the_engine_in_the_phases_they_are_about() {
    let records = records(&[
        "baselines",
        "--threads",
        "2",
        "--files",
        "300",
        "--seconds",
        "0.01",
        "--rounds",
        "1",
    ]);
    let order: Vec<_> = records.iter().map(subject).collect();
    for target in ["baseline:list", "mem:"] {
        for phase in ["create", "iterate", "unlink"] {
            assert!(order.contains(&(1, 2, None, target, phase)), "{order:?}");
        }
    }
    for design in ["lock", "two-counters", "one-counter"] {
        let target = format!("baseline:{design}");
        assert!(
            records.iter().any(|record| record["target"] == *target),
            "{target}"
        );
    }
    let reads = |record: &&Value| record["workload"] == "cached-read";
    assert_eq!(records.iter().filter(reads).count(), 4 * 4);
    for record in &records {
        let met = number(record, "items");
        match record["phase"].as_str().expect("text") {
            // All files, the two directories, and perhaps the root, ten times.
            "iterate" => assert!((6020.0..=6030.0).contains(&met), "{record}"),
            "create" | "unlink" => assert_eq!(met, 600.0, "{record}"),
            _ => assert!(met > 0.0, "{record}"),
        }
    }
}

#[test]
fn a_baseline_of_another_workload_is_refused() {
    for line in [
        ["sharded", "--target", "baseline:lock"],
        ["cached-read", "--target", "baseline:list"],
    ] {
        let output = run(&line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line:?}");
        assert!(errors.contains("is for another workload"), "{errors}");
    }
}
