//! Tests that cannot run here, and say so.
//!
//! The test runner knows no test that skips itself: it passes. So a line tells, past what the
//! runner keeps of a test's output, and `.ci/run` counts those lines apart from what passed.

use std::io::Write as _;
use std::path::Path;

/// Why no file system can be mounted here; `None`: it can.
#[must_use]
pub fn mount_obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        Some("mounting takes root here")
    } else if !Path::new("/dev/fuse").exists() {
        Some("there is no /dev/fuse")
    } else {
        None
    }
}

/// Says that the calling test, or a part of it, does not run, since this machine gives it no right
/// or no device to.
///
/// # Panics
/// Where the variable `CI` is `true`: what runs nowhere is not tested.
pub fn skipped(reason: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci, "skipped where CI=true: {reason}");
    tell(reason);
}

/// Says that the calling test, or a part of it, does not run, since the kernel lacks what it is
/// about.
pub fn skipped_by_kernel(reason: &str) {
    tell(reason);
}

/// Says that the calling test, or a part of it, does not run, since a program that it starts is not
/// installed.
pub fn skipped_by_package(reason: &str) {
    tell(reason);
}

fn tell(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("?"));
    // Not by `eprint`, which the runner catches. An error is ignored: without standard error no
    // reader exists.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    /// Runs [`what_skips_itself`] in a process of its own.
    fn run(ci: Option<&str>) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "skip::tests::what_skips_itself", "--ignored"]);
        match ci {
            Some(value) => command.env("CI", value),
            None => command.env_remove("CI"),
        };
        command.output().unwrap()
    }

    #[test]
    #[ignore = "run by the test below"]
    fn what_skips_itself() {
        skipped("no reason");
    }

    #[test]
    fn what_is_skipped_is_told_and_fails_where_all_must_run() {
        for ci in [None, Some("false")] {
            let output = run(ci);
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{told}");
            let line = "skipped: skip::tests::what_skips_itself: no reason\n";
            assert!(told.contains(line), "{told}");
        }
        assert!(!run(Some("true")).status.success());
    }
}
