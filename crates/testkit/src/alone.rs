//! Tests that count what their process does, beside no other test.

use std::env;
use std::process::{Command, Stdio};

/// Set in the process that runs one test.
const IS_ALONE: &str = "HOLDFAST_TEST_ALONE";

/// Runs the test of this name in a process of its own, and returns whether the caller is in that
/// process. Elsewhere the test has passed when this returns, and what it printed is printed.
///
/// # Panics
/// If the test fails there, or if no test has that name.
#[must_use]
pub fn alone(test: &str) -> bool {
    if env::var_os(IS_ALONE).is_some() {
        return true;
    }
    let output = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "--nocapture", test])
        .env(IS_ALONE, "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{test} by itself");
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_in_a_process_of_its_own() {
        if alone("alone::tests::a_test_runs_in_a_process_of_its_own") {
            let chosen: Vec<String> = env::args().skip(1).collect();
            assert_eq!(chosen[0], "--exact");
        }
    }

    #[test]
    #[should_panic(expected = "no such test by itself")]
    fn a_name_that_no_test_has_is_noticed() {
        assert!(!alone("no such test"));
    }
}
