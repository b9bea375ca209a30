//! Volumes as programs make and use them.

use holdfast::types::Errno;
use holdfast::{Caller, Volume, VolumeError};
use std::io::{Error, ErrorKind};

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

/// The number of an error; asserts that it is kept by `io::Error`.
#[track_caller]
fn number<T>(result: Result<T, VolumeError>) -> Errno {
    let error = result.err().expect("it fails");
    let number = error.raw_os_error().expect("every error has its number");
    assert_eq!(error.kind(), Error::from_raw_os_error(number).kind());
    assert!(!error.to_string().is_empty());
    assert_eq!(Error::from(error).raw_os_error(), Some(number));
    Errno::from_raw(number)
}

#[test]
fn errors_about_volumes_have_the_numbers_of_the_operating_system() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.hf");
    assert_eq!(number(Volume::open(&path)), Errno::ENOENT);
    assert_eq!(number(Volume::open_read_only(&path)), Errno::ENOENT);
    assert_eq!(number(Volume::inspect(&path)), Errno::ENOENT);
    assert_eq!(number(Volume::open(dir.path())), Errno::EISDIR);
    let text = "x".repeat(64);
    assert_eq!(number(Volume::builder().label(&text)), Errno::EINVAL);
    let none = dir.path().join("none.hf");
    std::fs::write(&none, vec![1; 1 << 20]).unwrap();
    assert_eq!(number(Volume::open(&none)), Errno::EUCLEAN);
    assert_eq!(number(Volume::inspect(&none)), Errno::EUCLEAN);
    assert_eq!(number(Volume::builder().format(&none)), Errno::EEXIST);

    let volume = Volume::builder().size(64 << 20).create(&path).unwrap();
    let busy = Volume::open(&path);
    let text = busy.as_ref().unwrap_err().to_string();
    assert!(text.contains("close it there first"), "{text}");
    assert_eq!(number(busy), Errno::EBUSY);
    assert_eq!(number(Volume::builder().create(&path)), Errno::EEXIST);
    assert_eq!(number(volume.grow(32 << 20)), Errno::EINVAL);
    volume.close().unwrap();
    let smaller = Volume::builder().force(true).size(32 << 20).format(&path);
    assert_eq!(number(smaller), Errno::EINVAL);
}

#[test]
fn a_revoked_volume_is_closed_cleanly_with_all_that_was_done_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.hf");
    let volume = Volume::builder()
        .caller(Caller::root())
        .size(64 << 20)
        .create(&path)
        .unwrap();
    let file = volume.create("/kept").unwrap();
    file.write_all_at(b"before", 0).unwrap();
    let orphan = volume.create("/orphan").unwrap();
    orphan.write_all_at(&[1; 100_000], 0).unwrap();
    volume.remove_file("/orphan").unwrap();
    volume.revoke().unwrap();
    assert!(file.write_all_at(b"after", 0).is_err());
    // One is closed in time, the other not.
    drop(orphan);
    volume.close().unwrap();
    drop(file);
    assert!(Volume::inspect(&path).unwrap().clean);
    let volume = Volume::open(&path).unwrap();
    assert_eq!(volume.read("/kept").unwrap(), b"before");
    assert_eq!(volume.info().inodes, 2);
    volume.close().unwrap();
}

#[test]
fn a_closed_volume_is_shared_until_one_of_its_readers_may_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.hf");
    let volume = Volume::builder().size(64 << 20).create(&path).unwrap();
    volume.write("/file", "content").unwrap();
    volume.close().unwrap();
    let before = std::fs::read(&path).unwrap();

    let open = || Volume::builder().open_shared(&path).unwrap().unwrap();
    let (one, two) = (open(), open());
    let third = Volume::open_read_only(&path).unwrap();
    for volume in [&one, &two, &third] {
        assert_eq!(volume.read_to_string("/file").unwrap(), "content");
        let refused = volume.write("/new", "x").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(number(Volume::open(&path)), Errno::EBUSY);
    assert_eq!(number(one.shared().unwrap().exclude_others()), Errno::EBUSY);
    drop(third);
    two.close().unwrap();
    assert!(std::fs::read(&path).unwrap() == before);

    one.shared().unwrap().exclude_others().unwrap();
    one.shared().unwrap().exclude_others().unwrap();
    assert_eq!(number(Volume::builder().open_shared(&path)), Errno::EBUSY);
    let options = one.core().options();
    one.core().set_options(holdfast::Options {
        read_only: false,
        ..options
    });
    one.write("/new", vec![7; 3 << 20]).unwrap();
    one.sync().unwrap();
    // As after a crash, it is for one process.
    let copy = dir.path().join("copy.hf");
    std::fs::copy(&path, &copy).unwrap();
    assert!(Volume::builder().open_shared(&copy).unwrap().is_none());
    let crashed = Volume::open(&copy).unwrap();
    assert_eq!(crashed.metadata("/new").unwrap().len(), 3 << 20);
    one.close().unwrap();
    let volume = open();
    assert_eq!(volume.metadata("/new").unwrap().len(), 3 << 20);
}

#[test]
fn a_volume_that_another_changed_meanwhile_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.hf");
    let volume = Volume::builder().size(64 << 20).create(&path).unwrap();
    volume.close().unwrap();
    let reader = Volume::builder().open_shared(&path).unwrap().unwrap();
    // A program that heeds no lock.
    let other = dir.path().join("other.hf");
    std::fs::copy(&path, &other).unwrap();
    let volume = Volume::open(&other).unwrap();
    volume.write("/file", "x").unwrap();
    volume.close().unwrap();
    let bytes = std::fs::read(&other).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(
        number(reader.shared().unwrap().exclude_others()),
        Errno::ESTALE
    );
    drop(reader);
    assert!(std::fs::read(&path).unwrap() == bytes);
}
