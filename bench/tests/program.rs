//! The workloads as a user runs them: a process, its records, and what it leaves behind.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-bench");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("started")
}

/// The records that a successful run printed.
fn records(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[arguments, &["--json", "-"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert!(
        errors.contains("median/s"),
        "the table goes beside the records: {errors}"
    );
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn number(record: &Value, field: &str) -> f64 {
    record[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no {field} in {record}"))
}

/// Can this process mount? Says why not otherwise.
fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && fs::File::open("/dev/fuse").is_ok();
    if !can {
        eprintln!("skipped: mounting needs root and /dev/fuse");
    }
    can
}

/// Waits until it is so, for seconds at most.
fn comes_true(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !what() {
        if begun.elapsed() > Duration::from_secs(20) {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).expect("listed").count()
}

/// What a record is about.
fn subject(record: &Value) -> (u64, u64, Option<u64>, &str, &str) {
    (
        record["round"].as_u64().expect("number"),
        record["threads"].as_u64().expect("number"),
        record["processes"].as_u64(),
        record["target"].as_str().expect("text"),
        record["phase"].as_str().expect("text"),
    )
}

#[test]
fn records_tell_the_memory_that_files_and_directories_take() {
    let records = records(&[
        "sharded",
        "--target",
        "mem:",
        "--files",
        "50000",
        "--per-dir",
        "1000",
        "--rounds",
        "2",
    ]);
    assert_eq!(records.len(), 2 * 8);
    for (phase, field) in [
        ("create", "rss_bytes_per_file"),
        ("mkdir", "rss_bytes_per_directory"),
    ] {
        let tell = records.iter().filter(|record| record[field].is_number());
        let tell: Vec<_> = tell.collect();
        assert_eq!(tell.len(), 2, "{field}");
        for record in tell {
            assert_eq!(record["phase"], phase);
            let growth = number(record, field);
            assert!((24.0..2000.0).contains(&growth), "{record}");
            let resident = number(record, "rss_bytes");
            assert!(resident > growth * 50_000.0, "{record}");
        }
    }
    for record in &records {
        assert_eq!(record["workload"], "sharded");
        // The iteration meets the directories and the root too.
        let more = if record["phase"] == "iterate" {
            52.0
        } else {
            0.0
        };
        assert_eq!(number(record, "items"), 50_000.0 + more, "{record}");
        assert!(number(record, "cpu_seconds") > 0.0);
        assert!(number(record, "cpu_seconds") <= number(record, "seconds") * 1.1 + 0.1);
        let layout = "50000 files per thread, directories of 1000";
        assert_eq!(record["run"]["layout"], layout);
    }
}

#[test]
fn rounds_are_interleaved_and_every_phase_meets_every_file() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&[
        "sharded",
        "--target",
        "mem:",
        "--target",
        &dir,
        "--threads",
        "1,2",
        "--processes",
        "--files",
        "200",
        "--per-dir",
        "30",
        "--rounds",
        "2",
    ]);
    let mut expected = Vec::new();
    let phases = [
        "create", "stat", "open", "walk", "iterate", "unlink", "mkdir", "rmdir",
    ];
    for round in [1, 2] {
        for (threads, processes) in [(1, None), (2, None), (2, Some(2))] {
            for target in ["mem:", &dir] {
                // A kernel has no call that meets all inodes.
                let offered = |phase: &&str| target == "mem:" || *phase != "iterate";
                let runs = phases.into_iter().filter(offered);
                expected.extend(runs.map(|phase| (round, threads, processes, target, phase)));
            }
        }
    }
    let order: Vec<_> = records.iter().map(subject).collect();
    assert_eq!(order, expected);
    for record in &records {
        let least = 200.0 * number(record, "threads");
        if record["phase"] == "iterate" {
            assert!(number(record, "items") > least, "{record}");
        } else {
            assert_eq!(number(record, "items"), least, "{record}");
        }
        assert!(number(record, "seconds") > 0.0, "{record}");
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn unasked_phases_are_neither_reported_nor_leave_files() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&[
        "sharded",
        "--target",
        &dir,
        "--files",
        "20",
        "--rounds",
        "1",
        "--phases",
        "walk,rmdir",
    ]);
    let order: Vec<_> = records.iter().map(subject).collect();
    let expected = ["walk", "rmdir"].map(|phase| (1, 1, None, dir.as_str(), phase));
    assert_eq!(order, expected);
    assert_eq!(number(&records[0], "items"), 20.0);
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_target_that_cannot_be_used_is_named_in_the_error() {
    let output = run(&["sharded", "--target", "dir:/nonexistent/below"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("cannot use /nonexistent/below"), "{errors}");
    let output = run(&["sharded", "--target", "mem:", "--files", "0"]);
    assert!(!output.status.success(), "no files are no measure");
}

#[test]
fn reads_are_counted_with_their_bytes_alone_in_processes_and_beside_a_writer() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&[
        "cached-read",
        "--target",
        "mem:",
        "--target",
        &dir,
        "--threads",
        "1,2",
        "--processes",
        "--sizes",
        "1,10K",
        "--reads",
        "2000",
        "--rounds",
        "1",
    ]);
    let alone = ["read2-1", "read2-10240", "pread3-1", "pread3-10240"];
    let beside = [
        "append-apart",
        "append-beside",
        "overwrite-apart",
        "overwrite-beside",
    ];
    let mut expected = Vec::new();
    for (threads, processes) in [(1, None), (2, None), (2, Some(2))] {
        for target in ["mem:", &dir] {
            let runs = |phase| (1, threads, processes, target, phase);
            expected.extend(alone.map(runs));
            if processes.is_none() {
                expected.extend(beside.map(runs));
            }
        }
    }
    let order: Vec<_> = records.iter().map(subject).collect();
    assert_eq!(order, expected);
    for record in &records {
        assert_eq!(record["workload"], "cached-read");
        let items = number(record, "items");
        assert_eq!(items, 2000.0 * number(record, "threads"));
        let phase = record["phase"].as_str().expect("text");
        let (_, bytes) = phase.split_once('-').expect("two parts");
        let bytes = bytes.parse().unwrap_or(4096.0);
        assert_eq!(number(record, "bytes"), items * bytes);
        let disturbed = beside.contains(&phase);
        assert_eq!(record["writes"].is_number(), disturbed, "{record}");
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn reads_go_on_for_as_long_as_was_asked() {
    let records = records(&[
        "cached-read",
        "--target",
        "mem:",
        "--seconds",
        "0.05",
        "--rounds",
        "1",
        "--sizes",
        "4096",
    ]);
    assert_eq!(records.len(), 6);
    for record in &records {
        let seconds = number(record, "seconds");
        assert!((0.05..1.0).contains(&seconds), "{record}");
        assert!(number(record, "items") > 100.0, "{record}");
        let phase = record["phase"].as_str().expect("text");
        if phase.ends_with("beside") || phase.ends_with("apart") {
            assert!(number(record, "writes") > 0.0, "{record}");
        }
    }
}

#[test]
fn baselines_run_beside_the_engine_in_the_phases_they_are_about() {
    let records = records(&[
        "baselines",
        "--threads",
        "2",
        "--files",
        "300",
        "--seconds",
        "0.01",
        "--rounds",
        "1",
    ]);
    let order: Vec<_> = records.iter().map(subject).collect();
    for target in ["baseline:list", "mem:"] {
        for phase in ["create", "iterate", "unlink"] {
            assert!(order.contains(&(1, 2, None, target, phase)), "{order:?}");
        }
    }
    for design in ["lock", "two-counters", "one-counter"] {
        let target = format!("baseline:{design}");
        assert!(
            records.iter().any(|record| record["target"] == *target),
            "{target}"
        );
    }
    let reads = |record: &&Value| record["workload"] == "cached-read";
    assert_eq!(records.iter().filter(reads).count(), 4 * 4);
    for record in &records {
        let met = number(record, "items");
        match record["phase"].as_str().expect("text") {
            // Each thread meets all files, the two directories, and perhaps the root.
            "iterate" => assert!((1204.0..=1206.0).contains(&met), "{record}"),
            "create" | "unlink" => assert_eq!(met, 600.0, "{record}"),
            _ => assert!(met > 0.0, "{record}"),
        }
    }
}

#[test]
fn a_baseline_of_another_workload_is_refused() {
    for line in [
        ["sharded", "--target", "baseline:lock"],
        ["cached-read", "--target", "baseline:list"],
    ] {
        let output = run(&line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line:?}");
        assert!(errors.contains("is for another workload"), "{errors}");
    }
}

/// A run that makes files in this folder for longer than any test waits.
fn endless_run(folder: &Path) -> Child {
    let target = format!("dir:{}", folder.display());
    let child = Command::new(PROGRAM)
        .args([
            "sharded", "--files", "200000", "--rounds", "1000", "--target", &target,
        ])
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

#[test]
fn ours_and_the_null_file_system_get_the_same_requests() {
    if !can_mount() {
        return;
    }
    let records = records(&[
        "fuse",
        "--transport",
        "dev",
        "--rounds",
        "1",
        "--seconds",
        "0.02",
        "--batch",
        "500",
        "--threads",
        "1,2",
    ]);
    assert_eq!(records.len(), 2 * 2 * 5);
    let (ours, null) = records.split_at(10);
    for (ours, null) in ours.iter().zip(null) {
        assert_eq!(
            (&ours["target"], &null["target"]),
            (&"mem".into(), &"null".into())
        );
        assert_eq!(
            (&ours["phase"], &ours["threads"]),
            (&null["phase"], &null["threads"])
        );
        assert_eq!(ours["transport"], "/dev/fuse");
        let each = |record| (number(record, "requests") / number(record, "items")).round();
        assert_eq!(each(ours), each(null), "{ours} {null}");
        let expected = match ours["phase"].as_str().expect("text") {
            // LOOKUP and what was asked for.
            "stat" | "unlink" => 2.0,
            // LOOKUP, CREATE, FLUSH, RELEASE.
            "create" => 4.0,
            _ => 1.0,
        };
        assert_eq!(each(ours), expected, "{ours}");
    }
}

#[test]
fn a_killed_run_leaves_no_mount() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut child = Command::new(PROGRAM)
        .args([
            "fuse",
            "--transport",
            "dev",
            "--target",
            "null",
            "--seconds",
            "100",
        ])
        .env("TMPDIR", folder.path())
        .spawn()
        .expect("started");
    let below = folder.path().to_str().expect("UTF-8");
    let mounted = || {
        fs::read_to_string("/proc/self/mounts")
            .expect("mounts")
            .contains(below)
    };
    assert!(comes_true(mounted), "nothing was mounted");
    sleep(Duration::from_millis(100));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(comes_true(|| !mounted()), "the mount is still there");
}
