//! Scattered writes.

use super::{entries, number, records, subject};

#[test]
fn writes_are_told_with_their_pieces_and_the_time_of_each_part() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let dir = format!("dir:{}", folder.path().join("host").display());
    let volume = format!("volume:{}", folder.path().join("image").display());
    let records = records(&format!(
        "sparse --target {volume} --target {dir} --threads 1,2 --writes 500 --fill 2 --writers 3 --small 20 --rounds 1"
    ));
    let mut expected = Vec::new();
    for phase in ["sparse-random", "sparse-stride", "fill", "fill-seq4"] {
        for threads in [1, 2] {
            expected.extend([&volume, &dir].map(|target| (1, threads, None, &target[..], phase)));
        }
    }
    expected.extend([&volume, &dir].map(|target| (1, 3, None, &target[..], "small-files")));
    let order: Vec<_> = records.iter().map(subject).collect();
    assert_eq!(order, expected);
    for record in &records {
        let threads = number(record, "threads");
        let (items, bytes) = match record["phase"].as_str().expect("text") {
            "small-files" => (20.0 * threads, 2048.0),
            "sparse-random" | "sparse-stride" => (500.0 * threads, 1024.0),
            _ => (2048.0, 1024.0),
        };
        assert_eq!(number(record, "items"), items, "{record}");
        assert_eq!(number(record, "bytes"), items * bytes, "{record}");
        assert!(number(record, "fsync_seconds") <= number(record, "seconds"));
    }
    let scattered = records.iter().filter(|record| {
        let of_volume = record["target"] == volume.as_str();
        of_volume && record["phase"] == "sparse-stride"
    });
    for record in scattered {
        assert_eq!(number(record, "extents_per_file"), 500.0);
        assert_eq!(record["write_nanos"].as_array().map(Vec::len), Some(50));
    }
    assert_eq!(entries(folder.path()), 0);
}
