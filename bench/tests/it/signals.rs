//! Runs that are ended from outside.

use super::{PROGRAM, comes_true, entries};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A run that makes files in this folder for longer than any test waits.
fn endless_run(folder: &Path) -> Child {
    let target = format!("dir:{}", folder.display());
    let child = Command::new(PROGRAM)
        .args("sharded --files 200000 --rounds 1000 --target".split(' '))
        .arg(target)
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let files = || {
        let tree = fs::read_dir(folder).ok()?.next()?.ok()?;
        let folder = fs::read_dir(tree.path().join("t0")).ok()?;
        Some(folder.count())
    };
    let has_files = || files().is_some_and(|files| files > 100);
    assert!(comes_true(has_files), "no files were made");
    child
}

#[test]
fn a_signal_ends_the_run_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut child = endless_run(folder.path());
    kill_process(Pid::from_child(&child), Signal::INT).expect("signal");
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut errors)
        .expect("read");
    assert!(!child.wait().expect("ended").success());
    assert!(errors.contains("interrupted"), "{errors}");
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn workers_of_a_killed_run_end_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut child = endless_run(folder.path());
    child.kill().expect("killed");
    child.wait().expect("ended");
    let empty = || entries(folder.path()) == 0;
    assert!(comes_true(empty), "the worker left its tree");
}
