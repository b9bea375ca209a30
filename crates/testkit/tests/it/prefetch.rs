//! Explicit prefetch: inodes of a directory come in few calls, by a place that its caller holds.

use holdfast_core::{FileSystem, Listing, Node, Options, Prefetch};
use holdfast_testkit::memory::within;
use holdfast_testkit::rng::Rng;
use holdfast_testkit::store::{Call, Faults, FaultyStore, ModelStore, RecordingStore};
use holdfast_types::{Caller, Caps, Errno, FileType, OpenFlags, SetAttr};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

/// Names of the directory in which names come and go.
const NAMES: usize = 600;

fn name(number: usize) -> Vec<u8> {
    format!("file-{number:06}").into_bytes()
}

fn make(fs: &FileSystem, dir: &Node, name: &[u8]) {
    let kind = FileType::Regular;
    fs.mknod(&Caller::root(), dir, name, kind, 0o644, 0)
        .unwrap();
}

/// A store with a directory of so many files.
fn filled(files: usize) -> Arc<ModelStore> {
    let store = Arc::new(ModelStore::new());
    let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
    let dir = fs
        .mkdir(&Caller::root(), &fs.root(), b"dir", 0o755)
        .unwrap();
    (0..files).for_each(|number| make(&fs, &dir, &name(number)));
    drop(dir);
    fs.close().unwrap();
    store
}

fn options(whole: bool) -> Options {
    Options {
        whole_directory: if whole { 1 << 20 } else { 16 },
        ..Options::default()
    }
}

fn dir_of(fs: &FileSystem) -> Node {
    fs.lookup(&Caller::root(), &fs.root(), b"dir").unwrap()
}

#[test]
fn what_was_prefetched_is_not_asked_for_again() {
    let files = 20_000;
    for whole in [true, false] {
        let store = RecordingStore::new(filled(files), Default::default());
        let fs = within(store.clone(), options(whole), Some(u64::MAX)).unwrap();
        let (who, dir) = (Caller::root(), dir_of(&fs));
        let open = fs.open(&who, &dir, OpenFlags::DIRECTORY).unwrap();
        store.hook().clear();
        let (mut cursor, mut passed) = (0, Vec::new());
        loop {
            let entries = Prefetch { entries: 9000 };
            match fs.prefetch_dir(&who, &open, &mut cursor, entries).unwrap() {
                0 => break,
                some => passed.push(some),
            }
        }
        assert_eq!(passed, [9000, 9000, 2000], "whole: {whole}");
        let loads = store.hook().count(Call::LoadInodes);
        assert!(loads <= 5, "{loads} loads");
        assert_eq!(fs.stats().statahead_issued, files as u64);
        for number in 0..files {
            let node = fs.lookup(&who, &dir, &name(number)).unwrap();
            assert_eq!(fs.getattr(&node).nlink, 1);
        }
        assert_eq!(store.hook().count(Call::LoadInodes), loads);
        assert_eq!(store.hook().count(Call::LookUp), 0);
        assert_eq!(fs.stats().statahead_used, files as u64);
    }
}

#[test]
fn it_takes_the_rights_that_a_listing_with_attributes_takes() {
    let fs = within(filled(10), options(true), None).unwrap();
    let (root, dir) = (Caller::root(), dir_of(&fs));
    let who = Caller {
        uid: 7,
        gid: 7,
        caps: Caps::empty(),
        ..Caller::root()
    };
    let prefetch = |who: &Caller, node: &Node, flags| {
        let end = AtomicU64::new(Listing::NO_END);
        let listing = Listing::new(node, flags, &end);
        fs.prefetch_dir(who, listing, &mut 0, Prefetch::default())
    };
    assert_eq!(prefetch(&who, &dir, OpenFlags::DIRECTORY), Ok(10));
    assert_eq!(prefetch(&who, &dir, OpenFlags::PATH), Err(Errno::EBADF));
    let file = fs.lookup(&root, &dir, &name(0)).unwrap();
    assert_eq!(
        prefetch(&root, &file, OpenFlags::empty()),
        Err(Errno::ENOTDIR)
    );
    // To list is not enough.
    let set = SetAttr {
        perm: Some(0o744),
        ..SetAttr::default()
    };
    fs.setattr(&root, &dir, &set, None).unwrap();
    assert_eq!(
        prefetch(&who, &dir, OpenFlags::DIRECTORY),
        Err(Errno::EACCES)
    );
    assert_eq!(prefetch(&root, &dir, OpenFlags::DIRECTORY), Ok(10));
    for number in 0..10 {
        fs.unlink(&root, &dir, &name(number)).unwrap();
    }
    fs.rmdir(&root, &fs.root(), b"dir").unwrap();
    assert_eq!(
        prefetch(&root, &dir, OpenFlags::DIRECTORY),
        Err(Errno::ENOENT)
    );
}

#[test]
fn an_inode_that_cannot_be_read_is_told_to_those_who_ask_for_it() {
    let store = FaultyStore::new(filled(100), Faults::default());
    let fs = within(store.clone(), options(true), None).unwrap();
    let (who, dir) = (Caller::root(), dir_of(&fs));
    let bad = fs.lookup(&who, &dir, &name(50)).unwrap().ino();
    fs.drop_caches().unwrap();
    store.hook().damage(bad);
    let open = fs.open(&who, &dir, OpenFlags::DIRECTORY).unwrap();
    let passed = fs.prefetch_dir(&who, &open, &mut 0, Prefetch::default());
    assert_eq!(passed, Ok(100));
    for number in 0..100 {
        let found = fs.lookup(&who, &dir, &name(number)).map(drop);
        let expected = if number == 50 {
            Err(Errno::EIO)
        } else {
            Ok(())
        };
        assert_eq!(found, expected);
    }
}

/// D2: it ends, and takes its share of memory at most.
#[test]
fn in_little_memory_it_goes_over_all_names_and_keeps_few_inodes() {
    const LITTLE: u64 = 1 << 20;
    let fs = within(filled(20_000), options(false), Some(LITTLE)).unwrap();
    let (who, dir) = (Caller::root(), dir_of(&fs));
    let open = fs.open(&who, &dir, OpenFlags::DIRECTORY).unwrap();
    let (mut cursor, mut passed) = (0, 0);
    loop {
        let all = Prefetch { entries: u64::MAX };
        let some = fs.prefetch_dir(&who, &open, &mut cursor, all).unwrap();
        if some == 0 {
            break;
        }
        passed += some;
        assert!(fs.stats().inodes * 136 < LITTLE, "{:?}", fs.stats());
    }
    assert_eq!(passed, 20_000);
}

/// Makes and removes names of its own, and removes the odd ones that were there, until it has done
/// all it wants.
fn write(fs: &FileSystem, dir: &Node, writer: usize, seed: u64) {
    let (who, mut rng) = (Caller::root(), Rng::new(seed + writer as u64));
    let mut own = BTreeSet::new();
    for round in 0..400 {
        let number = rng.index(100);
        let name_of = format!("own-{writer}-{number}").into_bytes();
        match own.take(&number) {
            Some(_) => fs.unlink(&who, dir, &name_of).unwrap(),
            None => {
                make(fs, dir, &name_of);
                own.insert(number);
            }
        }
        let odd = 2 * (3 * round + writer) + 1;
        if odd < NAMES {
            fs.unlink(&who, dir, &name(odd)).unwrap();
        }
    }
}

/// D6: names that are there all the time are gone over once and in order, whatever three writers do
/// beside.
#[test]
fn a_cursor_neither_skips_nor_repeats_names_that_stay() {
    for seed in 0..10 {
        println!("seed {seed}");
        let whole = seed % 2 == 0;
        let fs = within(filled(NAMES), options(whole), Some(u64::MAX)).unwrap();
        let (who, dir, mut rng) = (Caller::root(), dir_of(&fs), Rng::new(seed));
        let open = fs.open(&who, &dir, OpenFlags::DIRECTORY).unwrap();
        // The model: the cookies of those that stay, in order.
        let mut stay = Vec::new();
        fs.read_dir(&open, 2, &mut |entry| {
            if (0..NAMES).step_by(2).any(|even| *entry.name == *name(even)) {
                stay.push(entry.cookie);
            }
            true
        })
        .unwrap();
        assert_eq!(stay.len(), NAMES / 2);
        fs.drop_caches().unwrap();
        let mut met: Vec<u64> = Vec::new();
        thread::scope(|scope| {
            for writer in 0..3 {
                let (fs, dir) = (&fs, &dir);
                scope.spawn(move || write(fs, dir, writer, seed));
            }
            let mut cursor = 0;
            loop {
                let (before, entries) = (cursor, 1 + rng.below(40));
                let entries = Prefetch { entries };
                let passed = fs.prefetch_dir(&who, &open, &mut cursor, entries).unwrap();
                if passed == 0 {
                    assert_eq!(cursor, before);
                    break;
                }
                assert!(passed <= entries.entries && cursor > before);
                met.extend(
                    stay.iter()
                        .filter(|cookie| (before + 1..=cursor).contains(cookie)),
                );
            }
        });
        assert_eq!(met, stay, "seed {seed}");
    }
}
