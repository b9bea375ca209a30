//! What others change is told by the host, however long answers hold.

use crate::{NOTIFIED, over, seen};
use holdfast_core::FileSystem;
use holdfast_core::types::{Caller, OpenFlags, RenameFlags, SetAttr};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So long the host may take to tell, with other work beside it.
const TIMEOUT: Duration = Duration::from_secs(20);

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        sleep(Duration::from_millis(1));
    }
}

/// Waits until all is told that the host was changed by until now.
pub(crate) fn wait(fs: &FileSystem, root: &Path) {
    let shows = |name: &str| {
        let names = seen::names(fs, &fs.root()).unwrap();
        names.contains(&name.as_bytes().to_vec())
    };
    // What is told with the first may be told after it, and before the second.
    for name in ["first mark", "second mark"] {
        File::create(root.join(name)).unwrap();
        wait_for(name, || shows(name));
    }
    for name in ["first mark", "second mark"] {
        fs::remove_file(root.join(name)).unwrap();
        wait_for(name, || !shows(name));
    }
}

fn is_notified(fs: &FileSystem, path: &[u8]) -> bool {
    let since = Instant::now();
    let node = seen::node(fs, path).unwrap();
    fs.attributes(&node).unwrap();
    fs.notified_for(node.ino(), since) == Some(Duration::MAX)
}

/// A directory with two files and a directory, and a file system over it that has seen all.
fn seen_once() -> (tempfile::TempDir, FileSystem) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), b"one").unwrap();
    fs::write(dir.path().join("other"), b"two").unwrap();
    fs::create_dir(dir.path().join("below")).unwrap();
    fs::write(dir.path().join("below/deep"), b"three").unwrap();
    let fs = over(dir.path(), NOTIFIED);
    seen::compare(&fs, dir.path());
    // A directory was told of before it was asked for what is in it.
    wait(&fs, dir.path());
    seen::compare(&fs, dir.path());
    (dir, fs)
}

#[test]
fn an_open_file_that_others_write_shows_what_they_wrote() {
    let (dir, fs) = seen_once();
    let node = seen::node(&fs, b"below/deep").unwrap();
    let open = fs.open(&Caller::root(), &node, OpenFlags::empty()).unwrap();
    let mut file = OpenOptions::new()
        .append(true)
        .open(dir.path().join("below/deep"))
        .unwrap();
    for round in 0..10 {
        file.write_all(&[b'0' + round]).unwrap();
        wait(&fs, dir.path());
        let expected = fs::read(dir.path().join("below/deep")).unwrap();
        let mut shown = vec![0; 100];
        let len = fs.read(&open, 0, &mut shown).unwrap();
        assert_eq!(shown[..len], expected);
    }
}

#[test]
fn what_nobody_hears_of_is_not_taken_for_heard() {
    let (dir, fs) = seen_once();
    assert!(is_notified(&fs, b"file"));
    fs::hard_link(dir.path().join("file"), dir.path().join("below/another")).unwrap();
    wait(&fs, dir.path());
    assert!(
        !is_notified(&fs, b"file"),
        "it may be written by its other name"
    );
    fs::remove_file(dir.path().join("below/another")).unwrap();
    wait(&fs, dir.path());
    wait_for("one name", || is_notified(&fs, b"file"));
}

#[test]
fn own_changes_leave_nothing_in_doubt() {
    let (dir, fs) = seen_once();
    let (who, root) = (Caller::root(), fs.root());
    let below = seen::node(&fs, b"below").unwrap();
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let file = fs.create(&who, &below, b"made", 0o600, flags).unwrap();
    fs.write(&who, &file, 0, b"content").unwrap();
    let perm = SetAttr {
        perm: Some(0o640),
        ..SetAttr::default()
    };
    fs.setattr(&who, file.node(), &perm, None).unwrap();
    drop(file);
    fs.mkdir(&who, &root, b"dir", 0o755).unwrap();
    let none = RenameFlags::empty();
    fs.rename(&who, &below, b"made", &root, b"moved", none)
        .unwrap();
    fs.unlink(&who, &root, b"other").unwrap();
    let all = [&b"moved"[..], b"below", b"below/deep", b"file"];
    for path in all {
        assert!(is_notified(&fs, path), "{path:?}");
    }
    // Events of others are told meanwhile, and none of these.
    sleep(Duration::from_millis(100));
    for path in all {
        let since = Instant::now();
        let node = seen::node(&fs, path).unwrap();
        assert!(fs.notified_for(node.ino(), since).is_some(), "{path:?}");
    }
    seen::compare(&fs, dir.path());
    fs::write(dir.path().join("moved"), b"by another").unwrap();
    wait(&fs, dir.path());
    seen::compare(&fs, dir.path());
}

#[test]
fn an_operation_that_fails_hides_nothing() {
    let (dir, fs) = seen_once();
    let who = Caller::root();
    for round in 0..200 {
        let name = format!("name {round}");
        let by_other = std::thread::scope(|scope| {
            scope.spawn(|| File::create_new(dir.path().join(&name)).is_ok());
            let made = fs.mkdir(&who, &fs.root(), name.as_bytes(), 0o755);
            made.is_err()
        });
        println!("{name}: made by the other: {by_other}");
    }
    wait(&fs, dir.path());
    seen::compare(&fs, dir.path());
}

#[test]
fn what_is_not_known_any_more_is_not_watched() {
    let dir = tempfile::tempdir().unwrap();
    let options = holdfast_hostdir::Options {
        coherence: NOTIFIED,
        ..holdfast_hostdir::Options::default()
    };
    let store =
        std::sync::Arc::new(holdfast_hostdir::HostDirectory::open(dir.path(), options).unwrap());
    let fs = FileSystem::new(store.clone(), holdfast_core::Options::default()).unwrap();
    for number in 0..3000 {
        let below = dir.path().join(format!("{number}"));
        fs::create_dir(&below).unwrap();
        File::create(below.join("file")).unwrap();
    }
    wait_for("all are watched", || {
        seen::compare(&fs, dir.path());
        store.watched() > 3000
    });
    fs.drop_caches().unwrap();
    assert!(seen::node(&fs, b"7/file").is_ok());
    assert!(store.watched() < 100, "{}", store.watched());
    seen::compare(&fs, dir.path());
}

#[test]
fn links_that_are_made_again_at_once_lead_where_they_lead() {
    let (dir, fs) = seen_once();
    let path = dir.path().join("below/link");
    for round in 0..300 {
        let target = format!("target {round}");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        wait_for(&target, || {
            let link = seen::node(&fs, b"below/link");
            link.and_then(|link| fs.readlink(&link)) == Ok(target.as_bytes().into())
        });
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_number_that_the_host_uses_again_is_not_taken_for_the_file_that_is_gone() {
    let (dir, fs) = seen_once();
    let (file, pipe) = (dir.path().join("reused"), dir.path().join("below/pipe"));
    let below = seen::node(&fs, b"below").unwrap();
    for round in 0..200 {
        fs::write(&file, format!("{round}")).unwrap();
        wait_for("the file", || seen::node(&fs, b"reused").is_ok());
        let held = seen::node(&fs, b"reused").unwrap();
        fs::remove_file(&file).unwrap();
        let (at, mode) = (rustix::fs::CWD, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(at, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // The names are listed before the events are passed on, or after.
        let _ = seen::names(&fs, &fs.root());
        let _ = seen::names(&fs, &below);
        wait_for("the pipe", || {
            let found = seen::node(&fs, b"below/pipe");
            found.is_ok_and(|found| {
                let kind = fs.attributes(&found).map(|attr| attr.kind);
                kind == Ok(holdfast_core::types::FileType::Fifo)
            })
        });
        assert_ne!(seen::node(&fs, b"below/pipe").unwrap().ino(), held.ino());
        drop(held);
        fs::remove_file(&pipe).unwrap();
        wait_for("nothing", || seen::node(&fs, b"below/pipe").is_err());
    }
}
