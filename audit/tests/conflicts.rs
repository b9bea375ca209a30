//! The counts of the conflict audit do not grow.
//!
//! Only the classes that a few hundred pairs make up are tried here, and of those
//! pairs that show no conflict one round; `cargo xtask conflicts --check` tries all, nine times.

use std::process::Command;

/// The exit code of a machine that cannot do it.
const SKIPPED: i32 = 77;

fn check(store: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast-audit"))
        .args(["--quick", "--check", "--enough", "1", "--store", store])
        .output()
        .expect("the audit was built with this test");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(SKIPPED) {
        println!("{complained}");
        return;
    }
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
}

#[test]
fn no_more_pairs_conflict_than_the_constants_allow() {
    check("memory");
}

#[test]
fn no_more_pairs_conflict_over_a_volume_than_the_constants_allow() {
    check("volume");
}
