//! Runs many pairs, each in a process of its own.
//!
//! No pair finds what another one left in the heap or in an adaptive structure. A crash ends one
//! pair only.

use anyhow::{Context, Result};
use std::io::IsTerminal;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::placement::Pair;
use crate::report::Report;
use crate::store::StoreKind;
use crate::trial::Effort;

/// The C library copies with vector instructions whatever the size: a repeated instruction traps
/// for each byte, and touches the same lines.
const TUNABLES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824";

/// What became of a pair: a report, or why there is none.
pub(crate) type Outcome = Result<Report, String>;

/// Tries all of these pairs, as many at a time as `jobs` says; the outcomes are in their order.
pub(crate) fn run(
    pairs: &[Pair],
    effort: Effort,
    store: StoreKind,
    jobs: usize,
) -> Result<Vec<Outcome>> {
    let program = std::env::current_exe().context("this program's path")?;
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; pairs.len()]);
    let talking = std::io::stderr().is_terminal();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(pair) = pairs.get(index) else {
                        return;
                    };
                    let outcome = try_one(&program, pair, effort, store);
                    if talking && index.is_multiple_of(20) {
                        eprint!("\r{index} of {} pairs", pairs.len());
                    }
                    let mut outcomes = outcomes.lock().expect("nobody panics holding it");
                    outcomes[index] = Some(outcome);
                }
            });
        }
    });
    if talking {
        eprint!("\r\x1b[K");
    }
    let outcomes = outcomes.into_inner().expect("nobody panics holding it");
    outcomes
        .into_iter()
        .map(|outcome| outcome.context("a pair was left out"))
        .collect()
}

fn try_one(program: &std::path::Path, pair: &Pair, effort: Effort, store: StoreKind) -> Outcome {
    let output = Command::new(program)
        .env("GLIBC_TUNABLES", TUNABLES)
        .arg("--one")
        .args([
            "--pair".into(),
            format!("{},{}", pair.sides[0].name, pair.sides[1].name),
        ])
        .args(["--placement", pair.placement.word()])
        .args(["--store", store.word()])
        .args(effort.options())
        .output()
        .map_err(|error| format!("cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, said.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("no report: {error}"))
}
