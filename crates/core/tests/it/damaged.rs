//! Listings and attributes of an unreadable inode, and of a file with unknown space.

use holdfast_core::types::{Caller, Errno, FileType, OpenFlags};
use holdfast_core::{FileSystem, Options};
use holdfast_testkit::store::{Call, Fault, Faults, FaultyStore, ModelStore};
use std::sync::Arc;

#[test]
fn an_inode_that_cannot_be_read_costs_no_name_of_the_listing() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let mut names = Vec::new();
    for n in 0..300 {
        let name = format!("f{n}").into_bytes();
        // Some have more to be loaded than their record.
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
    // A lookup returns the error.
    assert_eq!(fs.lookup(&who, &root, &bad[0]).err(), Some(Errno::EIO));
    // It is found again when the store can read it.
    store.hook().heal();
    let kind = fs.lookup(&who, &root, &bad[1]).unwrap().kind();
    assert_eq!(kind, FileType::Symlink);
}

#[test]
fn whoever_asks_for_attributes_is_told_that_the_space_of_a_file_cannot_be_read() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let file = fs
        .create(&who, &root, b"f", 0o600, OpenFlags::READ_WRITE)
        .unwrap();
    // A page behind a hole.
    fs.write(&who, &file, 3 * 4096, &[1; 4096]).unwrap();
    let before = fs.attributes(file.node()).unwrap();
    assert_eq!((before.size, before.blocks), (4 * 4096, 8));
    drop(file);
    fs.sync().unwrap();
    fs.drop_caches().unwrap();
    store.hook().plan(Fault {
        call: Some(Call::NextSpace),
        after: 0,
        times: None,
        error: Errno::EIO,
    });
    let stat = || fs.stat_at(&who, &root, b"f", true);
    assert_eq!(stat().err(), Some(Errno::EIO));
    let dir = fs.open(&who, &root, OpenFlags::DIRECTORY).unwrap();
    let mut told = Vec::new();
    fs.read_dir_plus(&dir, 2, &mut |entry, attr| {
        told.push((entry.name.to_vec(), attr.map(|attr| attr.size)));
        true
    })
    .unwrap();
    assert_eq!(told, [(b"f".to_vec(), Err(Errno::EIO))]);
    // The name exists all the same.
    let node = fs.lookup(&who, &root, b"f").unwrap();
    assert_eq!(fs.attributes(&node).err(), Some(Errno::EIO));
    assert_eq!(fs.getattr(&node).size, before.size);
    store.hook().heal();
    assert_eq!(stat(), Ok(before));
}
