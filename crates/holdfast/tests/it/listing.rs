//! Listings of a directory in which one inode cannot be read.

use holdfast::{Caller, FileSystem, Options, types::Ino};
use holdfast_testkit::store::{Faults, FaultyStore, ModelStore};
use std::{io::ErrorKind, sync::Arc};

#[test]
fn an_entry_whose_inode_cannot_be_read_comes_and_tells_why() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::with_store(store.clone(), Options::default())
        .unwrap()
        .as_user(Caller::root());
    for n in 0..300 {
        fs.write(format!("/{n:03}"), b"x").unwrap();
    }
    let bad = fs.metadata("/150").unwrap().ino();
    fs.sync().unwrap();
    fs.core().drop_caches().unwrap();
    store.hook().damage(Ino(bad));
    let entries: Vec<_> = fs.read_dir("/").unwrap().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 300);
    for entry in &entries {
        assert!(entry.file_type().unwrap().is_file());
        if entry.file_name() == "150" {
            let error = entry.metadata().unwrap_err();
            assert_eq!((error.raw_os_error(), entry.ino()), (Some(5), bad));
        } else {
            assert_eq!(entry.metadata().unwrap().len(), 1);
        }
    }
    assert_ne!(fs.metadata("/150").unwrap_err().kind(), ErrorKind::NotFound);
}
