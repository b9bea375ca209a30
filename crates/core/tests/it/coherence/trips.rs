//! What operations cost over a store that is far away: the calls of the store, counted. The calls
//! are those of a mount: a kernel looks a name up before it uses the name.

use super::{FOR_A_SECOND, Pair};
use holdfast_core::types::{Attr, Caller, Errno, Ino, OpenFlags, RenameFlags, Result, SetAttr};
use holdfast_core::types::{SetTime, Time};
use holdfast_core::{DirEntry, Node};
use holdfast_testkit::store::Call::{
    self, Close, Flush, LoadInodes, LookUp, Perform, ReadDirectories, ReadNames,
};

/// Names in one reply to a kernel.
const REPLY: usize = 25;

/// The calls of the store that `act` makes.
fn calls(pair: &Pair, act: impl FnOnce()) -> Vec<(Call, u64)> {
    let before = pair.store.calls();
    act();
    let count = |(call, count): (Call, u64)| {
        let new = count - before.get(&call).copied().unwrap_or(0);
        (new > 0).then_some((call, new))
    };
    pair.store.calls().into_iter().filter_map(count).collect()
}

/// A file system over a store with one directory `top`, which is in memory without its names.
fn cold() -> (Pair, Node) {
    let pair = Pair::new(FOR_A_SECOND);
    pair.store.make_dir(Ino::ROOT, b"top");
    let top = pair.lookup(&pair.fs.root(), b"top").unwrap();
    (pair, top)
}

fn is_absent(pair: &Pair, dir: &Node, name: &[u8]) {
    assert_eq!(pair.lookup(dir, name).map(drop), Err(Errno::ENOENT));
}

fn make_dir(pair: &Pair, dir: &Node, name: &[u8]) -> Node {
    is_absent(pair, dir, name);
    pair.fs.mkdir(&Caller::root(), dir, name, 0o755).unwrap()
}

/// Creates a file, writes it and closes it.
fn make_file(pair: &Pair, dir: &Node, name: &[u8], content: &[u8]) -> Node {
    let (fs, who) = (&pair.fs, Caller::root());
    is_absent(pair, dir, name);
    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
    let file = fs.create(&who, dir, name, 0o644, flags).unwrap();
    if !content.is_empty() {
        assert_eq!(fs.write(&who, &file, 0, content), Ok(content.len()));
    }
    fs.flush(&file).unwrap();
    file.node().clone()
}

fn set(pair: &Pair, node: &Node, set: SetAttr) {
    pair.fs.setattr(&Caller::root(), node, &set, None).unwrap();
}

/// Lists a directory with attributes, one reply after the other.
fn list_long(pair: &Pair, dir: &Node) -> usize {
    let open = pair
        .fs
        .open(&Caller::root(), dir, OpenFlags::DIRECTORY)
        .unwrap();
    let (mut after, mut all) = (0, 0);
    loop {
        let (mut came, mut last) = (0, after);
        let mut sink = |entry: DirEntry<'_>, attr: Result<&Attr>| {
            if came == REPLY {
                return false;
            }
            attr.unwrap();
            (last, came) = (entry.cookie, came + 1);
            true
        };
        pair.fs.read_dir_plus(&open, after, &mut sink).unwrap();
        (after, all) = (last, all + came);
        if came == 0 {
            return all - 2;
        }
    }
}

fn fill(pair: &Pair, dir: Ino, files: usize) {
    for number in 0..files {
        let name = format!("{number:06}");
        pair.store.write(dir, name.as_bytes(), b"content");
    }
}

#[test]
fn changes_of_one_name_cost_as_many_calls_as_they_must() {
    let (pair, top) = cold();
    let who = Caller::root();
    let made = calls(&pair, || drop(make_file(&pair, &top, b"file", b"")));
    assert_eq!(made, [(LookUp, 1), (Perform, 1), (Close, 1), (Flush, 1)]);
    let made = calls(&pair, || drop(make_dir(&pair, &top, b"dir")));
    assert_eq!(made, [(LookUp, 1), (Perform, 1)]);
    let written = calls(&pair, || {
        drop(make_file(&pair, &top, b"written", &[1; 4096]))
    });
    // The third lookup lists the directory.
    let expected = [(Perform, 2), (Close, 1), (Flush, 1), (ReadDirectories, 1)];
    assert_eq!(written, expected);
    let node = pair.lookup(&top, b"file").unwrap();
    let perm = SetAttr {
        perm: Some(0o600),
        ..SetAttr::default()
    };
    let changed = calls(&pair, || set(&pair, &node, perm));
    assert_eq!(changed, [(Perform, 1)]);
    let renamed = calls(&pair, || {
        let none = RenameFlags::empty();
        let renamed = pair.fs.rename(&who, &top, b"file", &top, b"other", none);
        assert_eq!(renamed, Ok(()));
    });
    assert_eq!(renamed, [(Perform, 1)]);
    let removed = calls(&pair, || pair.fs.unlink(&who, &top, b"other").unwrap());
    assert_eq!(removed, [(Perform, 1)]);
    let removed = calls(&pair, || pair.fs.rmdir(&who, &top, b"dir").unwrap());
    assert_eq!(removed, [(Perform, 1)]);
}

#[test]
fn a_new_directory_is_known_to_be_empty() {
    let (pair, top) = cold();
    let dir = make_dir(&pair, &top, b"dir");
    let made = calls(&pair, || {
        is_absent(&pair, &dir, b"none");
        assert!(pair.list(&dir).is_empty());
        drop(make_dir(&pair, &dir, b"below"));
        drop(make_file(&pair, &dir, b"file", b""));
    });
    assert_eq!(made, [(Perform, 2), (Close, 1), (Flush, 1)]);
    let listed = calls(&pair, || assert_eq!(pair.list(&dir).len(), 2));
    assert_eq!(listed, []);
}

#[test]
fn a_cold_directory_is_listed_with_attributes_in_few_calls() {
    for files in [1000, 100_000] {
        let (pair, top) = cold();
        fill(&pair, top.ino(), files);
        let listed = || assert_eq!(list_long(&pair, &top), files);
        assert_eq!(calls(&pair, listed), [(ReadDirectories, 1)], "{files}");
        assert_eq!(calls(&pair, listed), [], "{files}, listed before");
    }
}

#[test]
fn a_directory_that_is_too_large_for_one_call_is_listed_in_runs() {
    let (pair, top) = cold();
    let files = (1 << 17) + 1;
    fill(&pair, top.ino(), files);
    let listed = calls(&pair, || assert_eq!(pair.list(&top).len(), files));
    let expected = [(LoadInodes, 1), (ReadNames, 10), (ReadDirectories, 1)];
    assert_eq!(listed, expected);
}

/// Calls `act` for each file of a tree of ten directories of ten files, in order.
fn each_file(mut act: impl FnMut(usize, &[u8], &[u8])) {
    for number in 0..100 {
        let (dir, name) = (format!("{:02}", number / 10), format!("{number:03}"));
        act(number, dir.as_bytes(), name.as_bytes());
    }
}

#[test]
fn attributes_of_all_files_of_a_tree_by_their_paths() {
    let (mut pair, top) = cold();
    each_file(|number, dir, name| {
        if number % 10 == 0 {
            pair.store.make_dir(top.ino(), dir);
        }
        let dir = pair.store.state().child(top.ino(), dir).unwrap();
        pair.store.write(dir, name, b"content");
    });
    let status = |pair: &Pair| {
        each_file(|_, dir, name| {
            let dir = pair.lookup(&top, dir).unwrap();
            let node = pair.lookup(&dir, name).unwrap();
            assert_eq!(pair.fs.attributes(&node).unwrap().size, 7);
        });
        // Files that the index does not have.
        each_file(|number, dir, _| {
            if number % 10 == 0 {
                let dir = pair.lookup(&top, dir).unwrap();
                assert_eq!(pair.list(&dir).len(), 10);
            }
        });
    };
    let cold = [(LookUp, 55), (ReadDirectories, 11)];
    assert_eq!(calls(&pair, || status(&pair)), cold);
    assert_eq!(calls(&pair, || status(&pair)), []);
    pair.pass(super::VALID);
    let expired = [(LoadInodes, 1), (LookUp, 33)];
    assert_eq!(calls(&pair, || status(&pair)), expired);
}

#[test]
fn a_tree_is_unpacked_and_removed() {
    let (pair, top) = cold();
    let long_ago = SetAttr {
        atime: Some(SetTime::At(Time(1))),
        mtime: Some(SetTime::At(Time(1))),
        ..SetAttr::default()
    };
    let unpacked = calls(&pair, || {
        let mut dir = None;
        each_file(|number, name, file| {
            if number % 10 == 0 {
                dir = Some(make_dir(&pair, &top, name));
            }
            let node = make_file(&pair, dir.as_ref().unwrap(), file, b"content");
            set(&pair, &node, long_ago);
        });
    });
    let expected = [
        (LookUp, 2),
        (Perform, 310),
        (Close, 100),
        (Flush, 100),
        (ReadDirectories, 1),
    ];
    assert_eq!(unpacked, expected);
    let removed = calls(&pair, || {
        for name in pair.list(&top) {
            let dir = pair.lookup(&top, &name).unwrap();
            for file in pair.list(&dir) {
                pair.lookup(&dir, &file).unwrap();
                pair.fs.unlink(&Caller::root(), &dir, &file).unwrap();
            }
            pair.fs.rmdir(&Caller::root(), &top, &name).unwrap();
        }
    });
    assert_eq!(removed, [(Perform, 110)]);
}
