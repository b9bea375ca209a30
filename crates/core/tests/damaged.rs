//! Listings of a directory in which one inode cannot be read.

use holdfast_core::types::{Caller, Errno, FileType, OpenFlags};
use holdfast_core::{FileSystem, Options};
use holdfast_testkit::store::{Faults, FaultyStore, ModelStore};
use std::sync::Arc;

#[test]
fn an_inode_that_cannot_be_read_costs_no_name_of_the_listing() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let mut names = Vec::new();
    for n in 0..300 {
        let name = format!("f{n}").into_bytes();
        // Some have more to load than their record.
        match n % 3 {
            0 => drop(fs.symlink(&who, &root, &name, b"target").unwrap()),
            _ => drop(
                fs.create(&who, &root, &name, 0o600, OpenFlags::READ_WRITE)
                    .unwrap(),
            ),
        }
        names.push(name);
    }
    let bad = [7, 150, 299].map(|n| names[n].clone());
    let inos = bad
        .each_ref()
        .map(|name| fs.lookup(&who, &root, name).unwrap().ino());
    fs.sync().unwrap();
    fs.drop_caches().unwrap();
    inos.iter().for_each(|&ino| store.hook().damage(ino));
    let dir = fs.open(&who, &root, OpenFlags::DIRECTORY).unwrap();
    let (mut listed, mut failed) = (Vec::new(), Vec::new());
    fs.read_dir_plus(&dir, 2, &mut |entry, attr| {
        listed.push(entry.name.to_vec());
        match attr {
            Ok(attr) => assert_eq!((entry.ino, entry.kind), (attr.ino, attr.kind)),
            Err(error) => failed.push((entry.name.to_vec(), entry.ino, error)),
        }
        true
    })
    .unwrap();
    assert_eq!(listed, names);
    let expected = bad.iter().cloned().zip(inos);
    let expected: Vec<_> = expected
        .map(|(name, ino)| (name, ino, Errno::EIO))
        .collect();
    assert_eq!(failed, expected);
    // Who wants the inode learns why it is not there.
    assert_eq!(fs.lookup(&who, &root, &bad[0]).err(), Some(Errno::EIO));
    // When the store gives it again, it is there.
    store.hook().heal();
    let kind = fs.lookup(&who, &root, &bad[1]).unwrap().kind();
    assert_eq!(kind, FileType::Symlink);
}
