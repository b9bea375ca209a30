//! Prometheus' own checker, for tests.

use holdfast_testkit::skip::skipped;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

/// The output of `promtool check metrics`: empty for a valid text. `None`: `promtool` is not
/// installed.
pub(crate) fn check(text: &str) -> Option<String> {
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skipped("no promtool, which Debian's package prometheus has");
            return None;
        }
        started => started.expect("promtool starts"),
    };
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(text.as_bytes()).expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    if !output.status.success() {
        said.push_str(&output.status.to_string());
    }
    Some(said)
}
