//! Small files.

use super::{entries, number, records, run, subject};

#[test]
fn records_tell_the_memory_that_files_and_directories_take() {
    let records = records("sharded --target mem: --files 50000 --per-dir 1000 --rounds 2");
    assert_eq!(records.len(), 2 * 7);
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
        assert_eq!(number(record, "items"), 50_000.0, "{record}");
        assert!(number(record, "cpu_seconds") > 0.0);
        assert!(number(record, "cpu_seconds") <= number(record, "seconds") * 1.1 + 0.1);
        let layout = "50000 files per thread, directories of 1000";
        assert_eq!(record["run"]["layout"], layout);
    }
}

#[test]
fn rounds_are_interleaved_and_every_phase_meets_every_file() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&format!(
        "sharded --target mem: --target {dir} --threads 1,2 --processes --files 200 --per-dir 30 --rounds 2"
    ));
    let mut expected = Vec::new();
    let phases = ["create", "stat", "open", "walk", "unlink", "mkdir", "rmdir"];
    for round in [1, 2] {
        // Threads and processes take turns at each phase.
        let heats = [vec![(1, None)], vec![(2, None), (2, Some(2))]];
        for aging in &heats {
            for target in ["mem:", &dir] {
                for phase in phases {
                    let runs = aging.iter();
                    expected.extend(
                        runs.map(|&(threads, processes)| {
                            (round, threads, processes, target, phase)
                        }),
                    );
                }
            }
        }
    }
    let order: Vec<_> = records.iter().map(subject).collect();
    assert_eq!(order, expected);
    for record in &records {
        let least = 200.0 * number(record, "threads");
        assert_eq!(number(record, "items"), least, "{record}");
        assert!(number(record, "seconds") > 0.0, "{record}");
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn unasked_phases_are_neither_reported_nor_leave_files() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&format!(
        "sharded --target {dir} --files 20 --rounds 1 --phases walk,rmdir"
    ));
    let order: Vec<_> = records.iter().map(subject).collect();
    let expected = ["walk", "rmdir"].map(|phase| (1, 1, None, dir.as_str(), phase));
    assert_eq!(order, expected);
    assert_eq!(number(&records[0], "items"), 20.0);
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_target_that_cannot_be_used_is_named_in_the_error() {
    let output = run("sharded --target dir:/nonexistent/below");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("cannot use /nonexistent/below"), "{errors}");
    let output = run("sharded --target mem: --files 0");
    assert!(!output.status.success(), "no files are no measure");
}
