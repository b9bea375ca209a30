//! Cached reads.

use super::{entries, number, records, subject};

#[test]
fn reads_are_counted_with_their_bytes_alone_in_processes_and_beside_a_writer() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let dir = format!("dir:{}", folder.path().display());
    let records = records(&format!(
        "cached-read --target mem: --target {dir} --threads 1,2 --processes --sizes 1,10K --reads 2000 --rounds 1"
    ));
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
    let records = records("cached-read --target mem: --seconds 0.05 --rounds 1 --sizes 4096");
    assert_eq!(records.len(), 6);
    for record in &records {
        let seconds = number(record, "seconds");
        assert!((0.05..30.0).contains(&seconds), "{record}");
        assert!(number(record, "items") > 100.0, "{record}");
        let phase = record["phase"].as_str().expect("text");
        if phase.ends_with("beside") || phase.ends_with("apart") {
            assert!(number(record, "writes") > 0.0, "{record}");
        }
    }
}
