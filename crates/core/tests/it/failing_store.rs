//! A file system over a failing store.

use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, OpenFlags, Result};
use holdfast_core::{FileSystem, Options, Visit};
use holdfast_testkit::store::{Call, Hook, ModelStore, SharedStore, Wrapped};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Fails changes while it is broken.
#[derive(Default)]
struct Fragile {
    broken: AtomicBool,
}

impl Hook for Fragile {
    fn before(&self, call: Call) -> Result<()> {
        match call == Call::Apply && self.broken.load(Relaxed) {
            true => Err(Errno::EIO),
            false => Ok(()),
        }
    }
}

#[test]
fn after_one_failed_change_nothing_is_written_and_everything_is_read() {
    let store = Wrapped::new(Arc::new(ModelStore::new()), Fragile::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let file = fs
        .create(&who, &root, b"a", 0o600, OpenFlags::READ_WRITE)
        .unwrap();
    fs.write(&who, &file, 0, b"before").unwrap();
    store.hook().broken.store(true, Relaxed);
    assert_eq!(fs.write(&who, &file, 0, b"during").err(), Some(Errno::EIO));
    store.hook().broken.store(false, Relaxed);
    assert_eq!(fs.write(&who, &file, 0, b"after").err(), Some(Errno::EROFS));
    assert_eq!(fs.mkdir(&who, &root, b"d", 0o755).err(), Some(Errno::EROFS));
    assert_eq!(fs.unlink(&who, &root, b"a").err(), Some(Errno::EROFS));
    let mut byte = [0];
    assert_eq!(fs.read(&file, 0, &mut byte), Ok(1));
}

#[test]
fn what_a_store_can_let_go_of_is_not_counted() {
    let fs = FileSystem::new(Arc::new(ModelStore::new()), Options::default()).unwrap();
    assert_eq!(fs.quota_on(true), Err(Errno::EOPNOTSUPP));
    assert!(!fs.quota_is_on());
}

#[test]
fn a_store_that_does_not_walk_shows_no_inodes_by_number() {
    let store = Arc::new(SharedStore::new(Coherence::Exclusive));
    let fs = FileSystem::new(store, Options::default()).unwrap();
    let mut scans = fs.bulkstats(4).unwrap();
    assert_eq!(scans.len(), 1);
    let shown = fs.bulkstat(&mut scans[0], |_, _| Ok(Visit::Continue));
    assert_eq!(shown, Err(Errno::EOPNOTSUPP));
    let told = fs.bulkstat_attributes(&mut scans[0], |_| Ok(Visit::Continue));
    assert_eq!(told, Err(Errno::EOPNOTSUPP));
}
