//! Volumes as programs make and use them.

use holdfast::Volume;
use std::io::ErrorKind;

#[test]
fn a_volume_filled_by_one_large_file_is_closed_and_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full.hf");
    let volume = Volume::builder().size(64 << 20).create(&path).unwrap();
    let file = volume.create("/huge").unwrap();
    let chunk = vec![1; 1 << 20];
    let mut at = 0;
    let error = loop {
        match file.write_all_at(&chunk, at) {
            Ok(()) => at += chunk.len() as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(at > 40 << 20, "{at}");
    drop(file);
    volume.close().unwrap();
    let volume = Volume::open(&path).unwrap();
    assert!(volume.metadata("/huge").unwrap().len() >= at);
    volume.remove_file("/huge").unwrap();
    volume.close().unwrap();
}
