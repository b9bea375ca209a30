//! Prometheus' own checker, for tests.

use holdfast_testkit::skip::skipped;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

/// The output of `promtool check metrics`: empty for a valid text. `None`: `promtool` is not
/// installed.
pub(crate) fn check(text: &str) -> Option<String> {
    let (succeeded, said) = run(&["check", "metrics"], text)?;
    Some(if succeeded {
        said
    } else {
        format!("{said}, and it failed")
    })
}

/// Whether `promtool` succeeds with these arguments and this input, and its output. `None`: it is
/// not installed.
pub(crate) fn run(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let started = Command::new("promtool")
        .args(arguments)
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
    stdin.write_all(input.as_bytes()).expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    Some((output.status.success(), said))
}
