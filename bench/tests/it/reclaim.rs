//! Budgets of memory.

use super::{entries, number, run, told};
use serde_json::Value;

fn phases(records: &[Value]) -> Vec<&str> {
    let phases = records.iter().map(|record| record["phase"].as_str());
    phases.map(|phase| phase.expect("text")).collect()
}

#[test]
fn a_flood_is_made_without_a_limit_and_within_the_budget() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    let line = format!(
        "reclaim --phases flood --memory 40m --threads 1,2 --files 30000 --per-dir 1000 --target {volume}"
    );
    let (records, table) = told(&format!("{line} --rounds 1"));
    let expected = ["flood-max", "flood-40m", "flood-max", "flood-40m"];
    assert_eq!(phases(&records), expected);
    for record in &records {
        assert_eq!(number(record, "items"), 30_000.0, "{record}");
        let parts = record["part_rates"].as_array().expect("tenths");
        assert_eq!(parts.len(), 10);
        assert!(number(record, "p99_nanos") > 0.0);
        let samples = record["rss_bytes_samples"].as_array().expect("samples");
        assert!(samples.len() >= 2);
        let limited = record["phase"] == "flood-40m";
        assert_eq!(record["budget_bytes"].as_u64(), limited.then_some(40 << 20));
    }
    assert!(table.contains("of unlimited"), "{table}");
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn what_is_found_in_memory_beside_a_walk_is_counted() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    let line = format!(
        "reclaim --phases working-set --memory 28m --of content --orders mixed --uses 1 --paces 10 --target {volume}"
    );
    let (records, table) = told(&format!("{line} --rounds 1"));
    let expected = [
        "content-fit-28m",
        "content-mixed-1x-alone-28m",
        "content-mixed-1x-1/10-28m",
    ];
    assert_eq!(phases(&records), expected);
    let (fit, records) = (number(&records[0], "held"), &records[1..]);
    assert!(fit >= 1000.0);
    let walked = number(&records[0], "items");
    assert!(
        records[0].get("uses").is_none(),
        "nothing is used beside it"
    );
    let beside = &records[1];
    assert_eq!(number(beside, "items"), walked);
    let uses = number(beside, "uses");
    assert!(uses > 0.0 && uses <= walked / 10.0 + 1.0, "{beside}");
    assert!(number(beside, "hits") <= uses, "{beside}");
    assert_eq!(beside["budget_bytes"].as_u64(), Some(28 << 20));
    assert!(number(beside, "held") > 500.0, "{beside}");
    assert!(table.contains("engine"), "{table}");
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn what_makes_no_sense_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    for (line, told) in [
        ("reclaim".to_owned(), "a --target is needed"),
        ("reclaim --target mem:".to_owned(), "no other than volumes"),
        (
            format!("reclaim --target {volume} --memory 64k"),
            "no budget",
        ),
    ] {
        let output = run(&line);
        assert!(!output.status.success(), "{line:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(told), "{errors}");
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_missed_goal_is_an_error_if_it_is_to_be_one() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    // No process takes a mebibyte only.
    let line = format!(
        "reclaim --target {volume} --phases flood --memory 1m --threads 1 --files 1000 --rounds 1"
    );
    let output = run(&line);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("MISSED"));
    let output = run(&format!("{line} --check"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("goals were missed"),
        "{errors}"
    );
    assert_eq!(entries(folder.path()), 0);
}
