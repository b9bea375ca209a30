//! Scanners that pass by once (`DONTCACHE`): what they alone bring in goes at once, and never what
//! somebody else uses. Over a store that can bring everything back.

use holdfast_core::types::{Caller, Errno, Ino, OpenFlags};
use holdfast_core::{Bulkstat, FileSystem, Options, Visit};
use holdfast_testkit::store::ModelStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const FILES: u64 = 500;

/// A tree of that many files, of which nothing but the root is in memory.
fn cold_tree() -> FileSystem {
    let fs = FileSystem::new(Arc::new(ModelStore::new()), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE;
    for number in 0..FILES {
        let name = format!("f{number}").into_bytes();
        drop(fs.create(&who, &root, &name, 0o644, flags).unwrap());
    }
    fs.drop_caches().unwrap();
    assert_eq!(fs.stats().inodes, 1);
    fs
}

fn scan_all(fs: &FileSystem) -> Vec<Ino> {
    let mut met = Vec::new();
    let seen = fs.bulkstat(&mut Bulkstat::new(), |node, attr| {
        assert_eq!(node.ino(), attr.ino);
        met.push(attr.ino);
        Ok(Visit::Continue)
    });
    seen.unwrap();
    met
}

#[test]
fn a_scan_meets_every_inode_once_and_leaves_none_behind() {
    let fs = cold_tree();
    let met = scan_all(&fs);
    assert_eq!(met.len() as u64, FILES + 1);
    assert!(met.is_sorted_by(|one, next| one < next));
    assert_eq!(fs.stats().inodes, 1, "what was brought in has gone");
}

#[test]
fn a_scan_goes_on_where_it_stopped() {
    let fs = cold_tree();
    let (mut scan, mut met) = (Bulkstat::new(), 0);
    while !scan.is_done() {
        let run = fs.bulkstat(&mut scan, |_, _| {
            met += 1;
            Ok(if met % 7 == 0 {
                Visit::Stop
            } else {
                Visit::Continue
            })
        });
        run.unwrap();
    }
    assert_eq!(met, FILES + 1);
    let failed = fs.bulkstat(&mut Bulkstat::new(), |_, _| Err(Errno::EINTR));
    assert_eq!(failed, Err(Errno::EINTR));
    assert_eq!(fs.stats().inodes, 1);
}

#[test]
fn what_somebody_uses_or_had_in_memory_stays() {
    let fs = cold_tree();
    let (who, root) = (Caller::root(), fs.root());
    let used = fs.lookup(&who, &root, b"f1").unwrap();
    let known = fs.lookup(&who, &root, b"f2").unwrap().ino();
    // The root, the used, the known, and perhaps what was read ahead behind them.
    let held = fs.stats().inodes;
    assert!((3..FILES / 2).contains(&held), "{held}");
    scan_all(&fs);
    assert_eq!(fs.stats().inodes, held);
    assert_eq!(fs.getattr(&used).nlink, 1);
    assert_eq!(fs.node(known).unwrap().ino(), known);
}

#[test]
fn what_others_ask_for_during_the_visit_is_kept() {
    let fs = cold_tree();
    let mut wanted = None;
    let seen = fs.bulkstat(&mut Bulkstat::new(), |node, _| {
        if node.ino() != Ino::ROOT && wanted.is_none() {
            wanted = Some(fs.node(node.ino()).unwrap());
        }
        Ok(Visit::Continue)
    });
    seen.unwrap();
    drop(wanted);
    assert_eq!(
        fs.stats().inodes,
        2,
        "the root, and the one that was asked for"
    );
}

#[test]
fn scans_beside_lookups_and_evictions_lose_nothing() {
    let fs = cold_tree();
    let (who, root, done) = (Caller::root(), fs.root(), AtomicBool::new(false));
    thread::scope(|scope| {
        let lookups = scope.spawn(|| {
            for round in 0..4000_u64 {
                let name = format!("f{}", round % FILES).into_bytes();
                let node = fs.lookup(&who, &root, &name).unwrap();
                assert_eq!(fs.getattr(&node).nlink, 1);
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs.drop_caches().unwrap();
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(scan_all(&fs).len() as u64, FILES + 1);
            }
        });
        lookups.join().unwrap();
        done.store(true, Ordering::Relaxed);
    });
    fs.drop_caches().unwrap();
    assert_eq!(fs.stats().inodes, 1);
}
