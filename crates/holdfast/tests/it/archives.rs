//! Archives of trees in which something cannot be read.

use holdfast::{Caller, CopyEvent, FileSystem, Options, PackOptions, UnpackOptions, types::Errno};
use holdfast_testkit::store::{Call, Fault, Faults, FaultyStore, ModelStore};
use std::{io, sync::Arc};

const LENGTH: usize = 3 << 20;

/// Packs three files while a read of the store fails after `reads` successful ones; returns the
/// archive and the events.
fn packed_with_one_failure(after: u64) -> (Vec<u8>, Vec<String>) {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::with_store(store.clone(), Options::default())
        .unwrap()
        .as_user(Caller::root());
    for name in ["/a", "/b", "/c"] {
        fs.write(name, vec![7; LENGTH]).unwrap();
    }
    fs.sync().unwrap();
    fs.core().drop_caches().unwrap();
    store.hook().plan(Fault {
        call: Some(Call::ReadData),
        after,
        times: Some(1),
        error: Errno::EIO,
    });
    let mut archive = Vec::new();
    let mut told = Vec::new();
    let mut watch = |event: CopyEvent<'_>| {
        if let CopyEvent::Failed(error) = event {
            told.push(error.error.to_string());
        }
    };
    fs.pack("/", &mut archive, &PackOptions::default(), &mut watch)
        .unwrap();
    (archive, told)
}

#[test]
fn content_that_cannot_be_read_is_told_with_its_cause_and_the_archive_goes_on_behind_it() {
    let cause = io::Error::from_raw_os_error(Errno::EIO.raw()).to_string();
    let mut with_zeros = 0;
    for after in 0..6 {
        let (archive, told) = packed_with_one_failure(after);
        let [text] = &told[..] else {
            panic!("after {after} reads: {told:?}")
        };
        assert!(text.contains(&cause), "{text}");
        let in_its_place = text.contains("zeros");
        with_zeros += u64::from(in_its_place);

        let copy = FileSystem::memory();
        let options = UnpackOptions::of(copy.caller());
        copy.unpack(&mut &archive[..], "/", &options, &mut |_| ())
            .unwrap();
        let files: Vec<Vec<u8>> = ["/a", "/b", "/c"]
            .iter()
            .filter_map(|name| copy.read(name).ok())
            .collect();
        assert_eq!(files.len(), 2 + usize::from(in_its_place));
        let whole = files.iter().filter(|file| **file == [7; LENGTH]);
        assert_eq!(whole.count(), 2);
        assert!(files.iter().all(|file| file.len() == LENGTH));
    }
    assert!(with_zeros > 0);
}
