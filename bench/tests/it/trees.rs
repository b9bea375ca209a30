//! Real programs on a tree.

use super::{PROGRAM, comes_true, entries, number, run, told};
use rustix::process::{Pid, Signal, kill_process};
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

fn arguments(target: &str, scratch: &str, phases: &str) -> String {
    format!("trees --target {target} --scratch {scratch} --phases {phases} --files 60 --rounds")
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
    let (records, table) = told(&format!("{} 2", arguments(&target, scratch, WARM)));
    assert!(table.contains("git-status"), "{table}");
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
    assert_eq!(entries(folder.path()), 0, "what was made is removed");
}

#[test]
fn a_program_that_fails_ends_the_run_with_what_it_said() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let scratch = folder.path().to_str().expect("UTF-8");
    // The last file of the archive is cut off: the census accepts it, and tar(1) refuses it.
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
    let archive = archive.display();
    let output = run(&format!(
        "trees --target {target} --scratch {scratch} --tree {archive}"
    ));
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
        .args(line.split(' '))
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
