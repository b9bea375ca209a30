//! One directory within a budget of memory.

use super::{entries, number, run};
use serde_json::Value;
use std::fs;

#[test]
fn a_directory_is_made_looked_into_listed_and_emptied() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    let json = folder.path().join("out.json");
    let path = json.to_str().expect("UTF-8");
    let line = [
        "names",
        "--target",
        &volume,
        "--names",
        "20000",
        "--lookups",
        "300",
        "--memory",
        "48m",
        "--rounds",
        "1",
        "--json",
        path,
    ];
    let output = run(&line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = fs::read_to_string(&json).expect("written");
    fs::remove_file(json).expect("there");
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let phases: Vec<&str> = records
        .iter()
        .filter_map(|record| record["phase"].as_str())
        .collect();
    assert_eq!(
        phases,
        [
            "create",
            "lookup",
            "list",
            "load-whole",
            "list-whole",
            "empty"
        ]
    );
    for record in &records {
        let items = if record["phase"] == "lookup" {
            300.0
        } else {
            20_000.0
        };
        assert_eq!(number(record, "items"), items, "{record}");
        let limited = !record["phase"].as_str().expect("text").ends_with("whole");
        assert_eq!(record["budget_bytes"].as_u64(), limited.then_some(48 << 20));
    }
    assert_eq!(
        number(&records[4], "device_reads"),
        0.0,
        "all of it is in memory"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("(>= 100 k)") && table.contains("80% of whole"),
        "{table}"
    );
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_missed_goal_is_an_error_if_it_is_to_be_one() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let volume = format!("volume:{}", folder.path().join("v").display());
    // No process takes a mebibyte only.
    let line = [
        "names",
        "--target",
        &volume,
        "--names",
        "1000",
        "--lookups",
        "10",
        "--memory",
        "1m",
        "--rounds",
        "1",
    ];
    let output = run(&line);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("MISSED"));
    let output = run(&[&line[..], &["--check"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("goals were missed"),
        "{errors}"
    );
    assert_eq!(entries(folder.path()), 0);
}
