//! What others change in the directory, below a file system over it.

use crate::{NEVER, over, seen};
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, FileType, OpenFlags};
use rustix::fs::{XattrFlags, removexattr, setxattr};
use std::fs::{self, File};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn extended_attributes_that_come_and_go_are_seen_also_of_a_file_that_rested() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap();
    if setxattr(&path, "user.probe", b"", XattrFlags::empty()).is_err() {
        println!("skipped: extended_attributes: the host has none");
        return;
    }
    removexattr(&path, "user.probe").unwrap();
    let fs = over(dir.path(), NEVER);
    let shown = |name: &[u8]| {
        let node = seen::node(&fs, b"file").unwrap();
        fs.getxattr(&Caller::root(), &node, name)
    };
    for round in 0..4 {
        // What was asked holds from now on.
        sleep(Duration::from_millis(50 * (round % 2)));
        for _ in 0..2 {
            assert_eq!(shown(b"user.one"), Err(Errno::ENODATA));
        }
        setxattr(&path, "user.one", b"value", XattrFlags::empty()).unwrap();
        sleep(Duration::from_millis(50 * (round / 2)));
        for _ in 0..2 {
            assert_eq!(shown(b"user.one"), Ok((*b"value").into()));
        }
        removexattr(&path, "user.one").unwrap();
    }
}

#[test]
fn what_is_gone_is_not_there_and_what_took_its_number_is_another() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let fs = over(dir.path(), NEVER);
    // It may be within reach for a moment, since it was looked up, and then has no name.
    let is_gone = |node: &holdfast_core::Node| match fs.attributes(node) {
        Ok(attr) => attr.nlink == 0 && attr.kind == FileType::Regular,
        Err(error) => error == Errno::ESTALE,
    };
    for round in 0..50 {
        fs::write(at("file"), format!("{round}")).unwrap();
        let old = seen::node(&fs, b"file").unwrap();
        fs::remove_file(at("file")).unwrap();
        assert_eq!(seen::node(&fs, b"file"), Err(Errno::ENOENT));
        assert!(is_gone(&old));
        fs::create_dir(at("file")).unwrap();
        let new = seen::node(&fs, b"file").unwrap();
        assert_ne!(old.ino(), new.ino(), "both are held");
        assert!(is_gone(&old));
        fs::remove_dir(at("file")).unwrap();
    }
}

#[test]
fn a_listing_that_goes_on_after_changes_repeats_and_loses_nothing_that_stays() {
    let dir = tempfile::tempdir().unwrap();
    let at = |number: usize| dir.path().join(format!("{number:03}"));
    (0..300).for_each(|number| drop(File::create(at(number)).unwrap()));
    let fs = over(dir.path(), NEVER);
    let open = fs
        .open(&Caller::root(), &fs.root(), OpenFlags::DIRECTORY)
        .unwrap();
    let (mut listed, mut after) = (Vec::new(), 0);
    for round in 0.. {
        let begun = listed.len();
        fs.read_dir(&open, after, &mut |entry| {
            if listed.len() == begun + 50 {
                return false;
            }
            after = entry.cookie;
            listed.push(entry.name.to_vec());
            true
        })
        .unwrap();
        if listed.len() == begun {
            break;
        }
        // Every third goes, and others come.
        let gone = round * 3;
        let _ = fs::remove_file(at(gone));
        File::create(at(500 + round)).unwrap();
    }
    let mut stayed: Vec<Vec<u8>> = (0..300)
        .filter(|number| at(*number).exists())
        .map(|number| format!("{number:03}").into_bytes())
        .collect();
    listed.retain(|name| stayed.contains(name));
    listed.sort();
    stayed.sort();
    assert_eq!(listed, stayed);
}

#[test]
fn an_exclusive_directory_is_asked_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, b"one").unwrap();
    let fs = over(dir.path(), Coherence::Exclusive);
    assert_eq!(seen::names(&fs, &fs.root()), Ok(vec![b"file".to_vec()]));
    assert_eq!(seen::content(&fs, b"file"), Ok(b"one".to_vec()));
    fs::remove_file(&path).unwrap();
    assert_eq!(seen::content(&fs, b"file"), Ok(b"one".to_vec()));
    // What has to be asked for again is not there any more.
    fs.drop_caches().unwrap();
    assert_eq!(seen::node(&fs, b"file"), Err(Errno::ENOENT));
}
