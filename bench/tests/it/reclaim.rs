//! Budgets of memory.

use super::{entries, number, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The records of a run that ended well, and its table.
fn measured(folder: &Path, arguments: &[&str]) -> (Vec<Value>, String) {
    let json = folder.join("out.json");
    let path = json.to_str().expect("UTF-8");
    let output = run(&[arguments, &["--rounds", "1", "--json", path]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let text = fs::read_to_string(&json).expect("written");
    fs::remove_file(json).expect("there");
    let records = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (
        records.collect(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

fn phases(records: &[Value]) -> Vec<&str> {
    let phases = records.iter().map(|record| record["phase"].as_str());
    phases.map(|phase| phase.expect("text")).collect()
}

#[test]
fn a_flood_is_made_without_a_limit_and_within_the_budget() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    let host = format!("dir:{}", folder.path().join("host").display());
    let line = [
        "reclaim",
        "--phases",
        "flood",
        "--memory",
        "40m",
        "--threads",
        "1,2",
        "--files",
        "30000",
        "--per-dir",
        "1000",
        "--target",
        &volume,
        "--target",
        &host,
    ];
    let (records, table) = measured(folder.path(), &line);
    let expected = [
        "flood-max",
        "flood-40m",
        "flood-max",
        "flood-max",
        "flood-40m",
        "flood-max",
    ];
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
    let line = [
        "reclaim",
        "--phases",
        "working-set,loop,shift,balance",
        "--memory",
        "28m",
        "--of",
        "content",
        "--orders",
        "mixed",
        "--uses",
        "1",
        "--paces",
        "10",
        "--accesses",
        "1",
        "--target",
        &volume,
    ];
    let (records, table) = measured(folder.path(), &line);
    let expected = [
        "content-fit-28m",
        "content-mixed-1x-alone-28m",
        "content-mixed-1x-1/10-28m",
        "content-loop-105%-28m",
        "content-loop-150%-28m",
        "content-loop-300%-28m",
        "content-shift-30%-28m",
        "content-shift-50%-28m",
        "balance-metadata-28m",
        "balance-data-28m",
        "balance-mix-28m",
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
    for record in &records[1..] {
        assert!(number(record, "hits") <= number(record, "uses"), "{record}");
        assert_eq!(record["budget_bytes"].as_u64(), Some(28 << 20));
    }
    for record in &records[1..7] {
        assert!(number(record, "held") > 500.0, "{record}");
    }
    for column in ["engine", "µs an access"] {
        assert!(table.contains(column), "{table}");
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn what_makes_no_sense_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    for (line, told) in [
        (&["reclaim"][..], "a --target is needed"),
        (&["reclaim", "--target", "mem:"], "known are `volume:PATH`"),
        (
            &["reclaim", "--target", &volume, "--memory", "64k"],
            "no budget",
        ),
        (
            &["names", "--target", &volume, "--names", "5"],
            "10 to 100,000,000",
        ),
    ] {
        let output = run(line);
        assert!(!output.status.success(), "{line:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(told), "{errors}");
    }
    assert_eq!(entries(folder.path()), 0);
}
