//! Answers that belong to different states of the store, put together: what is shown of them never
//! goes back.

use super::{FOR_A_SECOND, NOTIFIED, Pair, VALID};
use holdfast_core::store::{Coherence, Shared as _};
use holdfast_core::types::{Caller, Errno, Ino, SetAttr};
use holdfast_core::{FileSystem, Node, Options};
use holdfast_testkit::store::SharedStore;
use std::sync::mpsc::channel;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A look at a directory, after which its names may be in memory.
const LOOKS: [fn(&Pair, &Node); 3] = [
    |_, _| (),
    |pair, dir| drop(pair.list(dir)),
    |pair, dir| drop(pair.list_plus(dir)),
];

/// Another user completes what is known as `new` in the directory `below`, and then moves it to
/// the root: its names are read anew at once. No notification of the rest arrives.
fn move_up(pair: &mut Pair, new: &[u8], to: &[u8], complete: impl FnOnce(&SharedStore)) {
    pair.store.cut_off();
    complete(&pair.store);
    pair.store.rename((pair.dirs[1], new), (Ino::ROOT, to));
    match pair.store.coherence() {
        Coherence::Notified { .. } => {
            // The notification of an earlier change of the root.
            let above = pair.store.above().unwrap();
            above.entry(Ino::ROOT, b"another");
        }
        _ => pair.pass(VALID / 2),
    }
}

#[test]
fn a_name_does_not_lead_to_a_file_as_it_was_before_it_had_that_name() {
    for (number, look) in LOOKS.iter().enumerate() {
        for coherence in [FOR_A_SECOND, NOTIFIED] {
            let mut pair = Pair::new(coherence);
            let below = pair.dirs[1];
            pair.store.write(Ino::ROOT, b"a", b"old");
            pair.store.write(below, b"new", b"");
            let root = pair.fs.root();
            assert_eq!(pair.list_plus(&root).len(), 1);
            pair.pass(VALID / 2);
            let file = pair.lookup(&pair.dir(below), b"new").unwrap();
            assert_eq!(pair.content(&file), Ok(Vec::new()));
            pair.pass(1);
            move_up(&mut pair, b"new", b"a", |store| {
                store.write(below, b"new", b"complete");
            });
            pair.pass(1);
            look(&pair, &root);
            let found = pair.lookup(&root, b"a").unwrap();
            let what = format!("look {number}, {coherence:?}");
            if found.ino() == file.ino() {
                assert_eq!(pair.content(&found).unwrap(), b"complete", "{what}");
            } else {
                assert_eq!(pair.content(&found).unwrap(), b"old", "{what}");
            }
        }
    }
}

#[test]
fn a_name_does_not_lead_to_a_directory_as_it_was_before_it_had_that_name() {
    for (number, look) in LOOKS.iter().enumerate() {
        for coherence in [FOR_A_SECOND, NOTIFIED] {
            let mut pair = Pair::new(coherence);
            let below = pair.dirs[1];
            let new = pair.store.make_dir(below, b"new");
            let root = pair.fs.root();
            assert!(pair.list_plus(&root).is_empty());
            pair.pass(VALID / 2);
            let dir = pair.lookup(&pair.dir(below), b"new").unwrap();
            assert!(pair.list(&dir).is_empty());
            pair.pass(1);
            move_up(&mut pair, b"new", b"dir", |store| {
                store.write(new, b"file", b"");
            });
            pair.pass(1);
            look(&pair, &root);
            let found = pair.lookup(&root, b"dir").unwrap();
            assert_eq!(
                pair.list(&found),
                [(*b"file").into()],
                "look {number}, {coherence:?}"
            );
        }
    }
}

/// A store with two files, of which `b` is about to replace `a`, and no notification arrives.
fn two_files(coherence: Coherence) -> (Pair, Ino) {
    let pair = Pair::new(coherence);
    pair.store.write(Ino::ROOT, b"a", b"one");
    let file = pair.store.write(Ino::ROOT, b"b", b"two");
    pair.store.cut_off();
    // The root is fresh: to list it is one call.
    assert!(pair.lookup(&pair.fs.root(), b"none").is_err());
    (pair, file)
}

fn replace(store: &SharedStore) {
    store.rename((Ino::ROOT, b"b"), (Ino::ROOT, b"a"));
}

#[test]
fn a_listing_does_not_undo_the_answer_to_a_lookup_that_overtook_it() {
    for coherence in [FOR_A_SECOND, NOTIFIED] {
        let (mut pair, file) = two_files(coherence);
        let fs = pair.fs.clone();
        pair.store.meanwhile(move |store| {
            replace(store);
            let who = Caller::root();
            assert_eq!(fs.lookup(&who, &fs.root(), b"a").unwrap().ino(), file);
        });
        pair.list(&pair.fs.root());
        for _ in 0..2 {
            let found = pair.lookup(&pair.fs.root(), b"a").unwrap();
            assert_eq!(found.ino(), file, "{coherence:?}");
            pair.pass(1);
        }
    }
}

#[test]
fn a_listing_does_not_undo_the_answer_to_a_lookup_that_arrives_after_it() {
    for coherence in [FOR_A_SECOND, NOTIFIED] {
        let (mut pair, file) = two_files(coherence);
        let fs = pair.fs.clone();
        let (answered, is_answered) = channel();
        let (listed, is_listed) = channel();
        let (looked_up, is_looked_up) = channel();
        pair.store.meanwhile(move |store| {
            replace(store);
            store.meanwhile(move |_| {
                answered.send(()).unwrap();
                is_listed.recv_timeout(PATIENCE).unwrap();
            });
            std::thread::spawn(move || {
                let who = Caller::root();
                let found = fs.lookup(&who, &fs.root(), b"a").map(|node| node.ino());
                looked_up.send(found).unwrap();
            });
            is_answered.recv_timeout(PATIENCE).unwrap();
        });
        pair.list(&pair.fs.root());
        listed.send(()).unwrap();
        assert_eq!(is_looked_up.recv_timeout(PATIENCE).unwrap(), Ok(file));
        for _ in 0..2 {
            let found = pair.lookup(&pair.fs.root(), b"a").unwrap();
            assert_eq!(found.ino(), file, "{coherence:?}");
            pair.pass(1);
        }
    }
}

#[test]
fn the_owner_of_a_change_is_the_one_of_the_store() {
    let mut pair = Pair::new(FOR_A_SECOND);
    pair.store.write(Ino::ROOT, b"a", b"content");
    pair.pass(1);
    let owned_by = |uid| SetAttr {
        uid: Some(uid),
        ..SetAttr::default()
    };
    let root = Caller::root();
    let node = pair.lookup(&pair.fs.root(), b"a").unwrap();
    pair.fs.setattr(&root, &node, &owned_by(7), None).unwrap();
    let other = FileSystem::new(pair.store.clone(), Options::default()).unwrap();
    let there = other.lookup(&root, &other.root(), b"a").unwrap();
    other.setattr(&root, &there, &owned_by(8), None).unwrap();
    pair.pass(VALID + 1);
    let open_to_all = SetAttr {
        perm: Some(0o777),
        ..SetAttr::default()
    };
    let by = |uid| {
        let changed = pair
            .fs
            .setattr(&Caller::user(uid, uid), &node, &open_to_all, None);
        changed.map(|attr| attr.uid)
    };
    assert_eq!((by(7), by(8)), (Err(Errno::EPERM), Ok(8)));
}
