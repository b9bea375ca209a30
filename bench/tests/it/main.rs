//! The workloads as a user runs them: a process, its records, and what it leaves behind.

mod cached_read;
mod fuse;
mod listing;
mod mounts;
mod reclaim;
mod sharded;
mod signals;
mod sparse;
mod trees;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-bench");

/// Runs the program with the words of a line.
fn run(line: &str) -> Output {
    let mut program = Command::new(PROGRAM);
    program.args(line.split_whitespace()).stdin(Stdio::null());
    program.output().expect("started")
}

/// The records and the errors of a successful run.
fn told(line: &str) -> (Vec<Value>, String) {
    let output = run(&format!("{line} --json -"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let records = text.lines().map(serde_json::from_str);
    (
        records.map(|record| record.expect("JSON")).collect(),
        errors,
    )
}

/// The records that a successful run printed.
fn records(line: &str) -> Vec<Value> {
    let (records, errors) = told(line);
    assert!(
        errors.contains("median/s"),
        "the table goes beside the records: {errors}"
    );
    records
}

fn number(record: &Value, field: &str) -> f64 {
    record[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no {field} in {record}"))
}

/// Waits until it is so, for seconds at most.
fn comes_true(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !what() {
        if begun.elapsed() > Duration::from_secs(20) {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).expect("listed").count()
}

/// What a record is about.
fn subject(record: &Value) -> (u64, u64, Option<u64>, &str, &str) {
    (
        record["round"].as_u64().expect("number"),
        record["threads"].as_u64().expect("number"),
        record["processes"].as_u64(),
        record["target"].as_str().expect("text"),
        record["phase"].as_str().expect("text"),
    )
}
