//! What others change in the directory, below a file system over it.

use crate::{NEVER, over, seen};
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, FileType, OpenFlags};
use rustix::fs::{XattrFlags, removexattr, setxattr};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn content_attributes_and_names_are_those_of_now() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), b"one").unwrap();
    let fs = over(dir.path(), NEVER);
    assert_eq!(seen::content(&fs, b"file"), Ok(b"one".to_vec()));
    fs::write(at("file"), b"another").unwrap();
    assert_eq!(seen::content(&fs, b"file"), Ok(b"another".to_vec()));
    // Of the same length, perhaps within the same tick of the host's clock.
    fs::write(at("file"), b"a third").unwrap();
    assert_eq!(seen::content(&fs, b"file"), Ok(b"a third".to_vec()));
    for round in 0..20 {
        let name = format!("new {round}");
        assert_eq!(seen::node(&fs, name.as_bytes()), Err(Errno::ENOENT));
        File::create(at(&name)).unwrap();
        assert!(seen::node(&fs, name.as_bytes()).is_ok(), "{name}");
        seen::compare(&fs, dir.path());
    }
    fs::remove_file(at("new 3")).unwrap();
    fs::rename(at("new 4"), at("new 5")).unwrap();
    fs::create_dir(at("new 6 is a directory")).unwrap();
    seen::compare(&fs, dir.path());
}

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
fn an_open_file_goes_on_without_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, vec![1; 500_000]).unwrap();
    let fs = over(dir.path(), NEVER);
    let node = seen::node(&fs, b"file").unwrap();
    let open = fs.open(&Caller::root(), &node, OpenFlags::empty()).unwrap();
    let mut buf = [0; 10];
    fs::remove_file(&path).unwrap();
    assert_eq!(seen::node(&fs, b"file"), Err(Errno::ENOENT));
    assert_eq!(fs.read(&open, 400_000, &mut buf), Ok(10));
    assert_eq!(buf, [1; 10]);
}

#[test]
fn a_directory_that_moved_is_found_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("one/below")).unwrap();
    fs::create_dir(at("two")).unwrap();
    fs::write(at("one/below/file"), b"moved").unwrap();
    let fs = over(dir.path(), NEVER);
    let below = seen::node(&fs, b"one/below").unwrap();
    assert_eq!(seen::content(&fs, b"one/below/file"), Ok(b"moved".to_vec()));
    fs::rename(at("one/below"), at("two/there")).unwrap();
    assert_eq!(seen::node(&fs, b"one/below"), Err(Errno::ENOENT));
    assert_eq!(seen::content(&fs, b"two/there/file"), Ok(b"moved".to_vec()));
    assert_eq!(seen::node(&fs, b"two/there").unwrap(), below);
    seen::compare(&fs, dir.path());
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
fn two_file_systems_over_one_directory_see_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let (one, other) = (over(dir.path(), NEVER), over(dir.path(), NEVER));
    for round in 0..30 {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        writeln!(file, "{round}").unwrap();
        let expected = Ok(fs::read(&path).unwrap());
        assert_eq!(seen::content(&one, b"file"), expected);
        assert_eq!(seen::content(&other, b"file"), expected);
    }
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
