//! Answers of the store that a change overtakes, and changes without events.

use super::kernels::Told;
use super::{FOR_A_SECOND, NOTIFIED, Pair, VALID};
use holdfast_core::store::{Coherence, Shared as _};
use holdfast_core::types::{Caller, Errno, Ino, OpenFlags};
use holdfast_testkit::store::SharedStore;
use std::sync::Arc;

/// What another user does to the name `a` of the root; `b` is another file.
type Change = fn(&SharedStore);

const CHANGES: [(&str, Change); 4] = [
    ("written", |store| {
        store.write(Ino::ROOT, b"a", b"another");
    }),
    ("removed", |store| store.remove(Ino::ROOT, b"a")),
    ("replaced", |store| {
        store.rename((Ino::ROOT, b"b"), (Ino::ROOT, b"a"))
    }),
    ("made again", |store| {
        store.remove(Ino::ROOT, b"a");
        store.write(Ino::ROOT, b"a", b"another");
    }),
];

/// All that the root shows of `a`: in its listing, its attributes, and its content.
fn shown(pair: &Pair) -> (bool, Option<(u64, Vec<u8>)>) {
    let root = pair.fs.root();
    let listed = pair.list(&root).contains(&(*b"a").into());
    let node = match pair.lookup(&root, b"a") {
        Err(Errno::ENOENT) => return (listed, None),
        found => found.unwrap(),
    };
    let size = pair.fs.attributes(&node).unwrap().size;
    (listed, Some((size, pair.content(&node).unwrap())))
}

#[test]
fn an_answer_that_a_change_overtakes_is_not_kept() {
    type Ask = fn(&Pair);
    let asks: [(&str, Ask); 4] = [
        ("looked up", |pair| drop(pair.lookup(&pair.fs.root(), b"a"))),
        ("listed", |pair| drop(pair.list(&pair.fs.root()))),
        ("asked for attributes", |pair| {
            let _ = (pair.lookup(&pair.fs.root(), b"a")).map(|node| pair.fs.attributes(&node));
        }),
        ("read", |pair| {
            let _ = (pair.lookup(&pair.fs.root(), b"a")).map(|node| pair.content(&node));
        }),
    ];
    for (asked, ask) in asks {
        for (what, change) in CHANGES {
            // How many calls of the store precede the change, with nothing in memory or only old
            // answers.
            for answers in 1..8 {
                for known in [false, true] {
                    let mut pair = Pair::new(NOTIFIED);
                    pair.store.write(Ino::ROOT, b"a", b"one");
                    pair.store.write(Ino::ROOT, b"b", b"other");
                    if known {
                        shown(&pair);
                        pair.pass(3_600_000);
                    }
                    meanwhile(&pair.store, answers, change);
                    ask(&pair);
                    // There were fewer calls.
                    pair.store.meanwhile(|_| {});
                    pair.pass(1);
                    let state = pair.store.state();
                    let content = state.child(Ino::ROOT, b"a").map(|ino| {
                        let content = state.content(ino).unwrap();
                        (content.len() as u64, content)
                    });
                    let is = (content.is_some(), content);
                    assert_eq!(shown(&pair), is, "{asked}, {what} after {answers} answers");
                }
            }
        }
    }
}

/// Makes this change when `answers` more calls of the store are in progress.
fn meanwhile(store: &SharedStore, answers: u32, change: Change) {
    store.meanwhile(move |store| match answers {
        1 => change(store),
        _ => meanwhile(store, answers - 1, change),
    });
}

#[test]
fn what_was_read_before_a_change_is_not_taken_for_heard_though_the_store_was_asked_again() {
    let mut pair = Pair::new(NOTIFIED);
    let file = pair.store.write(Ino::ROOT, b"a", b"one");
    pair.pass(1);
    let since = pair.store.now();
    let node = pair.lookup(&pair.fs.root(), b"a").unwrap();
    let was = pair.fs.attributes(&node).unwrap();
    assert!(pair.fs.notified_for(file, since).is_some());
    pair.pass(1);
    // The answer has not arrived when another thread asks.
    pair.store.write(Ino::ROOT, b"a", b"longer");
    pair.pass(1);
    assert_ne!(pair.fs.attributes(&node).unwrap().size, was.size);
    assert!(
        pair.fs.notified_for(file, since).is_none(),
        "what was read is not true"
    );
    pair.pass(1);
    assert!(pair.fs.notified_for(file, pair.store.now()).is_some());
}

#[test]
fn a_link_that_has_the_number_of_one_that_is_gone_is_another() {
    for coherence in [NOTIFIED, FOR_A_SECOND] {
        let mut pair = Pair::new(coherence);
        pair.store.link(Ino::ROOT, b"link", b"one");
        let target = |pair: &Pair| {
            let node = pair.lookup(&pair.fs.root(), b"link")?;
            pair.fs.readlink(&node)
        };
        let held = pair.lookup(&pair.fs.root(), b"link").unwrap();
        for round in 0..5 {
            let to = format!("{round}");
            pair.store.link(Ino::ROOT, b"link", to.as_bytes());
            pair.pass(VALID);
            assert_eq!(target(&pair), Ok(to.into_bytes().into()));
        }
        assert_eq!(pair.fs.readlink(&held), Err(Errno::ESTALE));
    }
}

#[test]
fn a_file_that_is_looked_at_again_shows_changes_of_which_nobody_told() {
    for coherence in [NOTIFIED, FOR_A_SECOND] {
        let mut pair = Pair::new(coherence);
        let file = pair.store.write(Ino::ROOT, b"a", b"one");
        let told = Arc::new(Told::default());
        pair.fs.set_observer(Some(told.clone()));
        let node = pair.lookup(&pair.fs.root(), b"a").unwrap();
        let held = node.clone().into_raw();
        assert_eq!(pair.content(&node), Ok(b"one".to_vec()));
        pair.store.write_untold(Ino::ROOT, b"a", b"another");
        assert_eq!(
            pair.fs.revalidate(&node),
            Ok(false),
            "it was asked just now"
        );
        pair.pass(VALID);
        // Without events the answer is not valid any more.
        assert_eq!(pair.fs.revalidate(&node), Ok(coherence == NOTIFIED));
        assert_eq!(*told.0.lock().unwrap(), [(file, true)]);
        assert_eq!(pair.content(&node), Ok(b"another".to_vec()));
        pair.pass(VALID);
        assert_eq!(pair.fs.revalidate(&node), Ok(false), "nothing changed");
        pair.fs.forget(held, 1);
    }
}

#[test]
fn after_a_missed_change_a_name_is_asked_for_before_what_it_leads_to_is_opened() {
    let mut pair = Pair::new(NOTIFIED);
    pair.store.write(Ino::ROOT, b"a", b"one");
    pair.pass(1);
    let root = pair.fs.root();
    assert_eq!(pair.list_plus(&root).len(), 1);
    let node = pair.lookup(&root, b"a").unwrap();
    assert_eq!(pair.fs.look_before_open(&node), Ok(()));
    pair.store.write_untold(Ino::ROOT, b"a", b"another");
    pair.pass(VALID);
    assert_eq!(pair.fs.look_before_open(&node), Err(Errno::ESTALE));
    // The kernel looks the name up again, once: the store must have found the inode that is opened.
    let asked = pair.store.asked();
    let node = pair.lookup(&root, b"a").unwrap();
    assert!(pair.store.asked() > asked, "answered from memory");
    assert_eq!(pair.fs.look_before_open(&node), Ok(()));
    assert_eq!(pair.content(&node), Ok(b"another".to_vec()));
}

#[test]
fn a_new_directory_that_another_user_fills_at_once_is_not_shown_empty() {
    for (coherence, until) in [(NOTIFIED, 0), (FOR_A_SECOND, VALID)] {
        for unsettled in [false, true] {
            let mut pair = Pair::new(coherence);
            if unsettled {
                pair.store.unsettle();
            }
            let (who, root) = (Caller::root(), pair.fs.root());
            // Before the answer arrives.
            pair.store.meanwhile(|store| {
                let dir = store.state().child(Ino::ROOT, b"dir").unwrap();
                store.write(dir, b"early", b"");
            });
            let dir = pair.fs.mkdir(&who, &root, b"dir", 0o755).unwrap();
            pair.pass(until);
            assert!(pair.lookup(&dir, b"early").is_ok(), "{coherence:?}");
            pair.store.write(dir.ino(), b"late", b"");
            pair.pass(until);
            assert!(pair.lookup(&dir, b"late").is_ok(), "{coherence:?}");
            assert_eq!(pair.list(&dir).len(), 2, "{coherence:?}");
        }
    }
}

#[test]
fn a_new_directory_that_another_thread_fills_at_once_is_not_shown_empty() {
    for coherence in [Coherence::Exclusive, NOTIFIED] {
        let pair = &Pair::new(coherence);
        let (fs, root, who) = (&pair.fs, &pair.fs.root(), &Caller::root());
        for round in 0..300 {
            let name = format!("{round}");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let dir = loop {
                        if let Ok(dir) = pair.lookup(root, name.as_bytes()) {
                            break dir;
                        }
                    };
                    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
                    drop(fs.create(who, &dir, b"file", 0o644, flags).unwrap());
                    assert!(pair.lookup(&dir, b"file").is_ok(), "{round}");
                });
                fs.mkdir(who, root, name.as_bytes(), 0o755).unwrap();
            });
            let dir = pair.lookup(root, name.as_bytes()).unwrap();
            assert_eq!(pair.list(&dir), [(*b"file").into()], "{round}");
        }
    }
}
