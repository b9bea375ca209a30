//! Stat-ahead: inodes that come along with one that is asked for. What it saves, that it never
//! changes what a caller sees, and that it ends where it is of no use.

use holdfast_core::{FileSystem, Node, Options, Stats};
use holdfast_testkit::memory::within;
use holdfast_testkit::store::{Call, Fault, Faults, FaultyStore, ModelStore, RecordingStore};
use holdfast_types::{Attr, Caller, Errno, FileType, Ino, OpenFlags, RenameFlags, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Files of the directory of these tests.
const FILES: usize = 5000;

fn name(number: usize) -> Vec<u8> {
    format!("file-{number:06}").into_bytes()
}

/// A store with a directory of so many files, made in the order of their names.
fn filled(files: usize) -> Arc<ModelStore> {
    let store = Arc::new(ModelStore::new());
    let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
    let who = Caller::root();
    let dir = fs.mkdir(&who, &fs.root(), b"dir", 0o755).unwrap();
    for number in 0..files {
        let kind = FileType::Regular;
        fs.mknod(&who, &dir, &name(number), kind, 0o644, 0).unwrap();
    }
    drop(dir);
    fs.close().unwrap();
    store
}

/// Options for directories in memory as a whole, or not.
fn options(whole: bool, statahead: bool) -> Options {
    Options {
        whole_directory: if whole { 1 << 20 } else { 16 },
        statahead,
        ..Options::default()
    }
}

fn dir_of(fs: &FileSystem) -> Node {
    fs.lookup(&Caller::root(), &fs.root(), b"dir").unwrap()
}

fn list(fs: &FileSystem, dir: &Node) -> Vec<Vec<u8>> {
    let open = fs.open(&Caller::root(), dir, OpenFlags::DIRECTORY).unwrap();
    let mut names = Vec::new();
    fs.read_dir(&open, 2, &mut |entry| {
        names.push(entry.name.to_vec());
        true
    })
    .unwrap();
    names
}

fn stat(fs: &FileSystem, dir: &Node, name: &[u8]) -> Result<Attr> {
    let node = fs.lookup(&Caller::root(), dir, name)?;
    Ok(fs.getattr(&node))
}

fn unmet(stats: Stats) -> u64 {
    stats.statahead_issued - stats.statahead_used - stats.statahead_wasted
}

/// Numbers below `count` in no order.
fn mixed(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|number| (*number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11);
    order
}

/// R-D1.
#[test]
fn a_plain_listing_asks_for_no_inode() {
    let store = RecordingStore::new(filled(FILES), Default::default());
    for whole in [true, false] {
        let fs = within(store.clone(), options(whole, true), None).unwrap();
        let dir = dir_of(&fs);
        let loads = || [Call::LoadInodes, Call::Walk].map(|call| store.hook().count(call));
        let before = loads();
        for _ in 0..2 {
            assert_eq!(list(&fs, &dir).len(), FILES);
        }
        assert_eq!(loads(), before, "whole: {whole}");
        assert_eq!(fs.stats().statahead_issued, 0);
    }
}

#[test]
fn what_is_renamed_or_removed_in_the_order_of_a_listing_comes_in_few_calls() {
    let files = 20_000;
    for whole in [true, false] {
        let store = RecordingStore::new(filled(files), Default::default());
        for renamed in [true, false] {
            let fs = within(store.clone(), options(whole, true), Some(u64::MAX)).unwrap();
            let (who, dir) = (Caller::root(), dir_of(&fs));
            store.hook().clear();
            for name in (0..files).map(name) {
                let new = [&name[..], b"-new"].concat();
                let flags = RenameFlags::empty();
                match renamed {
                    true => fs.rename(&who, &dir, &name, &dir, &new, flags).unwrap(),
                    false => fs.unlink(&who, &dir, &new).unwrap(),
                }
            }
            let loads = [Call::LoadInodes, Call::Walk].map(|call| store.hook().count(call));
            assert!(
                loads[0] < 20,
                "{loads:?}, whole: {whole}, renamed: {renamed}"
            );
            assert_eq!(loads[1], 0);
            assert_eq!(unmet(fs.stats()), 0);
            fs.close().unwrap();
        }
    }
}

#[test]
fn what_is_asked_for_in_the_order_of_numbers_or_names_comes_in_few_calls() {
    // Neither the names nor the numbers ascend with the cookies.
    let files = 10_000;
    let store = Arc::new(ModelStore::new());
    let fs = within(store.clone(), Options::default(), Some(u64::MAX)).unwrap();
    let who = Caller::root();
    let [dir, from] =
        [b"dir".as_slice(), b"from"].map(|name| fs.mkdir(&who, &fs.root(), name, 0o755).unwrap());
    let mut made = Vec::new();
    for number in 0..files {
        let kind = FileType::Regular;
        let node = fs
            .mknod(&who, &from, &name(number), kind, 0o644, 0)
            .unwrap();
        made.push(node.ino());
    }
    let mut files_of: Vec<(Ino, Vec<u8>)> = Vec::new();
    for number in mixed(files) {
        let to = name((number * 7919) % files);
        let flags = RenameFlags::empty();
        fs.rename(&who, &from, &name(number), &dir, &to, flags)
            .unwrap();
        files_of.push((made[number], to));
    }
    fs.close().unwrap();
    drop((dir, from));
    drop(fs);
    let store = RecordingStore::new(store, Default::default());
    for by_name in [true, false] {
        let fs = within(store.clone(), options(false, true), Some(u64::MAX)).unwrap();
        let dir = dir_of(&fs);
        match by_name {
            true => files_of.sort_by(|one, other| one.1.cmp(&other.1)),
            false => files_of.sort(),
        }
        store.hook().clear();
        for (ino, name) in &files_of {
            assert_eq!(stat(&fs, &dir, name).unwrap().ino, *ino);
        }
        let calls = store.hook().count(Call::LoadInodes) + store.hook().count(Call::LookUp);
        assert!(calls < 32, "{calls} calls, by name: {by_name}");
        assert_eq!(unmet(fs.stats()), 0);
    }
}

#[test]
fn without_it_nothing_comes_that_nobody_asked_for() {
    let store = RecordingStore::new(filled(FILES), Default::default());
    let fs = within(store.clone(), options(true, false), Some(u64::MAX)).unwrap();
    let dir = dir_of(&fs);
    let names = list(&fs, &dir);
    store.hook().clear();
    for name in names.iter().take(100) {
        stat(&fs, &dir, name).unwrap();
    }
    assert_eq!(store.hook().count(Call::LoadInodes), 100);
    assert_eq!(fs.stats().statahead_issued, 0);
    assert_eq!(fs.stats().inodes, 102);
    // Nor by number.
    let ino = stat(&fs, &dir, &names[100]).unwrap().ino.0;
    (1..100).for_each(|more| drop(fs.node(Ino(ino + more)).unwrap()));
    assert_eq!(fs.stats().inodes, 102 + 100);
    // It can be switched on later.
    fs.set_options(options(true, true));
    for name in &names[1000..1100] {
        stat(&fs, &dir, name).unwrap();
    }
    assert!(fs.stats().statahead_issued > 50);
}

/// What a caller sees of a tree while it changes it: results, errors, attributes.
fn transcript(statahead: bool, whole: bool, damaged: usize) -> Vec<Result<(FileType, u64, u32)>> {
    let store = FaultyStore::new(filled(1000), Faults::default());
    let fs = within(store.clone(), options(whole, statahead), Some(u64::MAX)).unwrap();
    let (who, dir) = (Caller::root(), dir_of(&fs));
    let names = list(&fs, &dir);
    // Each so many cannot be loaded.
    let mut number = 0;
    let open = fs.open(&who, &dir, OpenFlags::DIRECTORY).unwrap();
    fs.read_dir(&open, 2, &mut |entry| {
        number += 1;
        if number % damaged == 0 {
            store.hook().damage(entry.ino);
        }
        true
    })
    .unwrap();
    let mut seen = Vec::new();
    let mut see = |result: Result<Attr>| {
        seen.push(result.map(|attr| (attr.kind, attr.size, attr.nlink)));
    };
    for (at, listed) in names.iter().enumerate() {
        see(stat(&fs, &dir, listed));
        let ahead = &names[(at + 3) % names.len()];
        match at % 7 {
            0 => see(fs
                .unlink(&who, &dir, ahead)
                .and_then(|()| stat(&fs, &dir, ahead))),
            1 => see(fs
                .mknod(&who, &dir, ahead, FileType::Fifo, 0o600, 0)
                .map(|node| fs.getattr(&node))),
            2 => {
                let flags = RenameFlags::empty();
                let moved = fs.rename(&who, &dir, listed, &dir, ahead, flags);
                see(moved.and_then(|()| stat(&fs, &dir, ahead)));
            }
            3 => see(fs.lookup(&who, &dir, ahead).and_then(|node| {
                let link = [ahead, &b"-link"[..]].concat();
                fs.link(&who, &node, &dir, &link)?;
                Ok(fs.getattr(&node))
            })),
            4 => drop(fs.drop_caches().unwrap()),
            _ => {}
        }
    }
    seen
}

/// D1.
#[test]
fn results_and_errors_are_the_same_with_it_and_without() {
    for whole in [true, false] {
        for damaged in [2, 10, usize::MAX] {
            let with = transcript(true, whole, damaged);
            let without = transcript(false, whole, damaged);
            assert!(with.len() > 1000);
            let other = with
                .iter()
                .zip(&without)
                .position(|(one, other)| one != other);
            assert_eq!(
                other, None,
                "whole: {whole}, each {damaged}th cannot be loaded"
            );
            assert_eq!(with.len(), without.len());
        }
    }
}

/// D1, where the store fails for a while.
#[test]
fn a_batch_that_fails_fails_nobody_whose_own_inode_can_be_loaded() {
    let store = FaultyStore::new(filled(FILES), Faults::default());
    let fs = within(store.clone(), options(true, true), Some(u64::MAX)).unwrap();
    let dir = dir_of(&fs);
    let names = list(&fs, &dir);
    for listed in &names {
        // The next load fails, whatever it brings, if it is not the only one of this lookup.
        store.hook().heal();
        store.hook().plan(Fault {
            call: Some(Call::LoadInodes),
            after: 0,
            times: Some(1),
            error: Errno::EIO,
        });
        let first = stat(&fs, &dir, listed);
        let seen = first.or_else(|error| {
            assert_eq!(error, Errno::EIO);
            stat(&fs, &dir, listed)
        });
        assert_eq!(seen.unwrap().nlink, 1);
    }
}

/// D4.
#[test]
fn what_came_along_is_not_found_once_it_ended() {
    for whole in [true, false] {
        let fs = within(filled(FILES), options(whole, true), Some(u64::MAX)).unwrap();
        let (who, dir) = (Caller::root(), dir_of(&fs));
        let names = list(&fs, &dir);
        let first = stat(&fs, &dir, &names[0]).unwrap();
        assert_eq!(fs.stats().statahead_issued, 8);
        // One is made anew, one has another moved over it, one goes.
        fs.unlink(&who, &dir, &names[1]).unwrap();
        let anew = fs
            .mknod(&who, &dir, &names[1], FileType::Fifo, 0o600, 0)
            .unwrap();
        let flags = RenameFlags::empty();
        fs.rename(&who, &dir, &names[0], &dir, &names[2], flags)
            .unwrap();
        fs.unlink(&who, &dir, &names[3]).unwrap();
        assert_eq!(stat(&fs, &dir, &names[1]).unwrap().ino, anew.ino());
        assert_eq!(stat(&fs, &dir, &names[2]).unwrap().ino, first.ino);
        for gone in [0, 3] {
            assert_eq!(stat(&fs, &dir, &names[gone]), Err(Errno::ENOENT));
        }
        let used = fs.stats().statahead_used;
        assert_eq!(used, 3, "what ended was used");
    }
}

/// D4, side by side: each name has ever greater files moved over it.
#[test]
fn a_file_that_was_replaced_is_never_seen_again_by_those_who_scan() {
    const NAMES: usize = 600;
    for whole in [true, false] {
        let fs = within(filled(NAMES), options(whole, true), Some(u64::MAX)).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let dir = dir_of(&fs);
                    let mut sizes = [0; NAMES];
                    while !done.load(Relaxed) {
                        for (number, least) in sizes.iter_mut().enumerate() {
                            let size = stat(&fs, &dir, &name(number)).unwrap().size;
                            assert!(size >= *least, "{size} after {least}");
                            *least = size;
                        }
                    }
                });
            }
            let (who, dir) = (Caller::root(), dir_of(&fs));
            for round in 1..=4_u64 {
                for number in mixed(NAMES) {
                    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
                    let made = fs.create(&who, &dir, b"next", 0o644, flags).unwrap();
                    fs.write(&who, &made, 0, &vec![7; round as usize]).unwrap();
                    drop(made);
                    let flags = RenameFlags::empty();
                    fs.rename(&who, &dir, b"next", &dir, &name(number), flags)
                        .unwrap();
                    if number % 50 == 0 {
                        fs.drop_caches().unwrap();
                    }
                }
            }
            done.store(true, Relaxed);
        });
    }
}

/// D2.
#[test]
fn inodes_that_nobody_asked_for_yet_take_no_more_than_their_share_of_little_memory() {
    const LITTLE: u64 = 1 << 20;
    let files = 30_000;
    let fs = within(filled(files), options(false, true), Some(LITTLE)).unwrap();
    let dir = dir_of(&fs);
    let names = list(&fs, &dir);
    // An eighth of what inodes may take.
    let share = LITTLE / 2 / 8 / 136;
    for order in [(0..files).collect(), mixed(files)] {
        for number in order {
            stat(&fs, &dir, &names[number]).unwrap();
            let stats = fs.stats();
            assert!(unmet(stats) <= share, "{stats:?}");
        }
    }
    let stats = fs.stats();
    assert!(stats.statahead_used > files as u64 / 2, "{stats:?}");
}
