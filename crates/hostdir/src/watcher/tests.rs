use super::own::{Key, Own};
use super::*;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Watches a directory as the root.
fn watcher(dir: &Path) -> Watcher {
    let watcher = Watcher::new().unwrap();
    let open = openat(CWD, dir, OFlags::PATH, Mode::empty()).unwrap();
    watcher.watch(Ino::ROOT, open.as_fd());
    assert_eq!(watcher.watched(), 1);
    watcher
}

fn read(watcher: &Watcher) -> (bool, HashMap<Key, ReadFlags>) {
    let mut queue = watcher.queue.lock();
    watcher.read(&mut queue).unwrap();
    queue.take()
}

#[test]
fn what_happens_to_a_name_passes_on_together_and_what_is_missed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = watcher(dir.path());
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    paths.iter().for_each(|path| fs::write(path, b"x").unwrap());
    let (missed, events) = read(&watcher);
    let all = ReadFlags::CREATE | ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
    assert!(!missed && events.len() == 2);
    assert_eq!(events[&(Ino::ROOT, (*b"a").into())], all);
    // More than the kernel's queue holds, and none like the one before it.
    for round in 0..watcher.most as u32 / 2 + 100 {
        let permissions = Permissions::from_mode(0o600 | (round % 8));
        for path in &paths {
            fs::set_permissions(path, permissions.clone()).unwrap();
        }
    }
    assert!(read(&watcher).0);
    assert!(read(&watcher).1.is_empty(), "said once");
}

fn names(watcher: &Watcher) -> Vec<Box<[u8]>> {
    let mut names: Vec<_> = read(watcher).1.into_keys().map(|(_, name)| name).collect();
    names.sort_unstable();
    names
}

/// An operation that causes this to `own`.
fn causing(causes: ReadFlags) -> Vec<Own> {
    vec![Own {
        key: (Ino::ROOT, (*b"own").into()),
        causes,
    }]
}

#[test]
fn an_operation_drops_its_own_and_one_that_fails_drops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = watcher(dir.path());
    let make = |name: &str| fs::write(dir.path().join(name), b"x").unwrap();
    let making = ReadFlags::CREATE | ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
    let own = watcher.begin(causing(making));
    make("own");
    make("other");
    own.finish();
    // From here on it may be another's.
    make("own");
    drop(own);
    assert_eq!(names(&watcher), [(*b"other").into(), (*b"own").into()]);
    let own = watcher.begin(causing(making));
    make("own");
    // As the thread does meanwhile.
    assert!(names(&watcher).is_empty());
    drop(own);
    assert_eq!(names(&watcher), [(*b"own").into()]);
    let own = watcher.begin(causing(ReadFlags::CLOSE_WRITE));
    make("own");
    own.finish();
    let watcher = read(&watcher).1;
    assert_eq!(
        watcher[&(Ino::ROOT, (*b"own").into())],
        ReadFlags::MODIFY,
        "only the closing is its own"
    );
}

#[test]
fn an_operation_does_not_hide_what_others_do_to_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = watcher(dir.path());
    let at = |name: &str| dir.path().join(name);
    fs::write(at("own"), b"x").unwrap();
    fs::write(at("new"), b"y").unwrap();
    assert_eq!(names(&watcher).len(), 2);
    let passes_on = |what: &str| assert_eq!(names(&watcher), [(*b"own").into()], "{what}");
    let writing = ReadFlags::MODIFY | ReadFlags::ATTRIB | ReadFlags::CLOSE_WRITE;
    let own = watcher.begin(causing(writing));
    fs::write(at("own"), b"z").unwrap();
    fs::remove_file(at("own")).unwrap();
    own.finish();
    passes_on("the file that is written is removed");
    let own = watcher.begin(causing(ReadFlags::CREATE | writing));
    fs::write(at("own"), b"z").unwrap();
    fs::remove_file(at("own")).unwrap();
    fs::write(at("own"), b"by another").unwrap();
    own.finish();
    passes_on("the file that was made is replaced");
    let own = watcher.begin(causing(ReadFlags::DELETE | writing));
    fs::remove_file(at("own")).unwrap();
    fs::create_dir(at("own")).unwrap();
    own.finish();
    passes_on("the name that was removed is used again");
}
