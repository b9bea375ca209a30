//! Real programs on a tree.

use super::{PROGRAM, comes_true, entries, number, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Is this program there? Says that it is missed otherwise.
fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: there is no {program}");
    }
    has
}

const WARM: &str = "untar,find,ls,ls-again,du,grep,git-commit,git-status,cp,untar-two";

fn arguments<'a>(target: &'a str, scratch: &'a str, phases: &'a str) -> [&'a str; 11] {
    [
        "trees",
        "--target",
        target,
        "--scratch",
        scratch,
        "--phases",
        phases,
        "--files",
        "60",
        "--rounds",
        "2",
    ]
}

#[test]
fn a_directory_gets_every_phase_in_order_and_nothing_stays_in_it() {
    if !has("git") {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let scratch = folder.path().to_str().expect("UTF-8");
    let place = folder.path().join("place");
    let target = format!("dir:{}", place.display());
    let json = folder.path().join("out.json");
    let line = arguments(&target, scratch, WARM);
    let output = run(&[&line[..], &["--json", json.to_str().expect("UTF-8")]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("git-status"), "{table}");
    let text = fs::read_to_string(&json).expect("written");
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let phases = |round: u64| -> Vec<&str> {
        let mine = records.iter().filter(|record| record["round"] == round);
        mine.map(|record| record["phase"].as_str().expect("text"))
            .collect()
    };
    assert_eq!(phases(1).join(","), WARM);
    assert_eq!(phases(2).join(","), WARM);
    for record in &records {
        assert!(number(record, "items") > 60.0, "{record}");
        assert!(
            record.get("requests").is_none(),
            "it is no mount of ours: {record}"
        );
    }
    assert!(number(&records[0], "bytes") > 60.0 * 64.0);
    fs::remove_file(json).expect("there");
    assert_eq!(entries(folder.path()), 0, "what was made is removed");
}

#[test]
fn a_program_that_fails_ends_the_run_with_what_it_said() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let scratch = folder.path().to_str().expect("UTF-8");
    // An archive whose last file is cut off is counted, and then refused by tar(1).
    let archive = folder.path().join("cut.tar");
    let status = Command::new("tar")
        .args([
            "cf",
            archive.to_str().expect("UTF-8"),
            "-C",
            "/proc/self",
            "status",
        ])
        .status()
        .expect("started");
    assert!(status.success());
    let whole = fs::read(&archive).expect("there");
    fs::write(&archive, &whole[..600]).expect("written");
    let target = format!("dir:{}", folder.path().join("place").display());
    let output = run(&[
        "trees",
        "--target",
        &target,
        "--scratch",
        scratch,
        "--tree",
        archive.to_str().expect("UTF-8"),
    ]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cut.tar"), "{errors}");
    assert_eq!(entries(folder.path()), 1, "only the archive stays");
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let place = folder.path().join("place");
    let target = format!("dir:{}", place.display());
    let scratch = folder.path().to_str().expect("UTF-8");
    let line = arguments(&target, scratch, "untar,find");
    let mut child = Command::new(PROGRAM)
        .args(&line[..line.len() - 1])
        .arg("100000")
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    let works = || tree_in(&place);
    assert!(comes_true(works), "nothing was unpacked");
    kill_process(Pid::from_child(&child), Signal::INT).expect("signal");
    assert!(!child.wait().expect("ended").success());
    assert_eq!(entries(folder.path()), 0);
}

/// Was something unpacked there?
fn tree_in(place: &Path) -> bool {
    let Some(Ok(own)) = fs::read_dir(place).ok().and_then(|mut own| own.next()) else {
        return false;
    };
    own.path().join("one/node_modules").exists()
}
