//! `cargo xtask instructions`: user-space instructions per operation of the core.
//!
//! The package `holdfast-audit` has a program that carries out one operation a number of times in
//! one function. It runs here under valgrind's callgrind, which counts the instructions between the
//! entry of that function and its return, on its thread. The least of [`ROUNDS`] runs is taken.
//!
//! *Table.* `xtask/instructions.table` has the counts that the limits start from, and the limits.
//! `--check` fails where a count is above its limit.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const TABLE: &str = "xtask/instructions.table";
const HEAD: &str = "\
# User-space instructions per operation, counted by `cargo xtask instructions`: profile `instructions`
# (release without link-time optimisation), one thread, x86-64. `before` is what the limit starts from.
# store operation before limit
";
const USAGE: &str = "usage: cargo xtask instructions [--check | --write PERCENT]";
const PROFILE: &str = "instructions";
const STORES: [&str; 2] = ["mem", "volume"];

/// The least of so many runs is taken: a run that meets a helper thread takes more instructions.
const ROUNDS: usize = 3;

/// Callgrind counts the instructions of this function only.
const COUNTED: &str = "--toggle-collect=*::counted";

/// An operation, and how often it is carried out. More than 200 calls of `fsync` meet checkpoints.
const OPERATIONS: [(&str, u64); 13] = [
    ("create", 4_000),
    ("unlink", 4_000),
    ("lookup", 4_000),
    ("stat", 4_000),
    ("open", 4_000),
    ("read-1", 4_000),
    ("read-4k", 4_000),
    ("write-4k", 4_000),
    ("rename", 4_000),
    ("readdir-1000", 100),
    ("lookup-cold", 4_000),
    ("chmod-cold", 4_000),
    ("fsync", 200),
];

/// Memory drops nothing and has nothing to make durable.
const OF_VOLUMES: [&str; 3] = ["lookup-cold", "chmod-cold", "fsync"];

/// What the table says of an operation.
#[derive(Clone, Copy)]
struct Row {
    before: u64,
    limit: u64,
}

/// Counts, prints, and does what the options say.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<ExitCode> {
    let write = match options {
        [] | ["--check"] => None,
        ["--write", percent] => Some(percent.parse::<u64>().context(USAGE)?),
        _ => bail!(USAGE),
    };
    let path = root.join(TABLE);
    let table = rows(&fs::read_to_string(&path).unwrap_or_default());
    let program = build(root)?;
    let mut text = HEAD.to_owned();
    let mut above = 0;
    println!("{:<20}{:>10}{:>10}{:>10}", "", "now", "before", "limit");
    for (store, operation, times) in wanted() {
        let name = format!("{store} {operation}");
        let now = count(&program, store, operation, times)?;
        let row = table.get(&name);
        let shown = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        let [before, limit] = [row.map(|row| row.before), row.map(|row| row.limit)].map(shown);
        let is_above = row.is_none_or(|row| now > row.limit);
        let word = if is_above { "  above" } else { "" };
        println!("{name:<20}{now:>10}{before:>10}{limit:>10}{word}");
        above += usize::from(is_above);
        if let Some(percent) = write {
            writeln!(text, "{name} {now} {}", now * (100 + percent) / 100)?;
        }
    }
    if write.is_some() {
        fs::write(&path, text).context(TABLE)?;
        println!("{TABLE} is up to date");
        return Ok(ExitCode::SUCCESS);
    }
    if options == ["--check"] && above > 0 {
        println!("instructions: {above} operations without a limit or above it");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is counted, in the order of the table.
fn wanted() -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    STORES.into_iter().flat_map(|store| {
        let of_store = move |(name, _): &(&str, _)| store != "mem" || !OF_VOLUMES.contains(name);
        let operations = OPERATIONS.into_iter().filter(of_store);
        operations.map(move |(name, count)| (store, name, count))
    })
}

/// The rows of the table by store and operation.
fn rows(table: &str) -> BTreeMap<String, Row> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let [store, operation, before, limit] = line
            .split_whitespace()
            .collect::<Vec<_>>()
            .try_into()
            .ok()?;
        let before = before.parse().ok()?;
        let limit = limit.parse().ok()?;
        Some((format!("{store} {operation}"), Row { before, limit }))
    };
    lines.filter_map(row).collect()
}

/// Builds the program, and says where it is.
fn build(root: &Path) -> Result<std::path::PathBuf> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        bail!("instructions are counted by valgrind, which is missing: apt-get install valgrind");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--profile", PROFILE])
        .args(["--package", "holdfast-audit", "--features", "valgrind"])
        .args(["--bin", "holdfast-instructions"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the program to be counted was not built");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    Ok(target.join(PROFILE).join("holdfast-instructions"))
}

/// Instructions per operation.
fn count(program: &Path, store: &str, operation: &str, count: u64) -> Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        least = least.min(collected(program, store, operation, count)?);
    }
    Ok((least + count / 2) / count)
}

/// Instructions of one run.
fn collected(program: &Path, store: &str, operation: &str, count: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            COUNTED,
            "--callgrind-out-file=/dev/null",
        ])
        .arg(program)
        .args([store, operation, &count.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{store} {operation} failed under valgrind:\n{report}");
    }
    total(&report).with_context(|| format!("no count in what valgrind reports:\n{report}"))
}

/// The total that callgrind reports.
fn total(report: &str) -> Option<u64> {
    let (_, behind) = report.split_once("Collected :")?;
    behind.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_callgrinds_report() {
        let report = "==7== Events    : Ir\n==7== Collected : 1234\n==7==\n";
        assert_eq!(total(report), Some(1234));
        assert_eq!(total("==7== killed\n"), None);
    }

    #[test]
    fn every_operation_has_a_row_in_the_table() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let table = rows(&fs::read_to_string(root.join(TABLE))?);
        for (store, operation, _) in wanted() {
            let row = table.get(&format!("{store} {operation}"));
            assert!(
                row.is_some_and(|row| row.before <= row.limit),
                "{store} {operation}"
            );
        }
        Ok(())
    }
}
