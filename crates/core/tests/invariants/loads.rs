//! I1, R-I8: what is loaded is what the store last heard, and nobody meets what is not ready.

use crate::stage::{Stage, gated};
use holdfast_core::types::{
    Caller, Errno, FileType, Ino, OpenFlags, RenameFlags, SetAttr, XattrSet,
};
use holdfast_core::{Bulkstat, InodeWalk, Visit};
use holdfast_testkit::store::Call;
use std::thread;
use std::time::Duration;

fn chmod(perm: u16) -> SetAttr {
    SetAttr {
        perm: Some(perm),
        ..SetAttr::default()
    }
}

/// An inode is read, then changed and evicted by others before it is known: what was read is the
/// past.
#[test]
fn an_inode_that_changes_while_it_is_loaded_shows_the_change() {
    let (gate, stage) = gated(Call::LoadXattrs);
    let ino = stage.open("f").node().ino();
    stage.fs.drop_caches().unwrap();
    gate.hook().arm();
    thread::scope(|scope| {
        let loading = scope.spawn(|| stage.fs.node(ino));
        gate.hook().wait();
        let node = stage.lookup("f").unwrap();
        let set = stage.fs.setattr(&stage.who, &node, &chmod(0o777), None);
        assert_eq!(set.map(|attr| attr.perm), Ok(0o777));
        drop(node);
        assert_eq!(stage.fs.drop_caches().map(|dropped| dropped.inodes), Ok(1));
        gate.hook().open();
        let loaded = loading.join().unwrap().unwrap();
        assert_eq!(stage.fs.getattr(&loaded).perm, 0o777);
    });
}

/// For who asks by number it is gone; a scan goes on behind it.
#[test]
fn an_inode_that_is_freed_while_it_is_loaded_is_no_corruption() {
    for scan in [false, true] {
        let (gate, stage) = gated(Call::LoadXattrs);
        let ino = stage.open("f").node().ino();
        let last = stage.open("last").node().ino();
        stage.fs.drop_caches().unwrap();
        gate.hook().arm();
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                if !scan {
                    return stage.fs.node(ino).map(|_| vec![ino]);
                }
                let mut met = Vec::new();
                let scanned = stage.fs.bulkstat(&mut Bulkstat::new(), |node, _| {
                    met.push(node.ino());
                    Ok(Visit::Continue)
                });
                scanned.map(|()| met)
            });
            gate.hook().wait();
            stage.unlink("f");
            gate.hook().open();
            let expected = if scan {
                Ok(vec![Ino::ROOT, last])
            } else {
                Err(Errno::ESTALE)
            };
            assert_eq!(loading.join().unwrap(), expected);
        });
        stage.fs.drop_caches().unwrap();
        assert_eq!(stage.held().inodes, 1);
    }
}

/// The numbers that can be asked for, and those that a walk shows.
fn known(stage: &Stage) -> (Vec<u64>, Vec<u64>) {
    let asked = (1..1000).filter(|ino| stage.fs.node(Ino(*ino)).is_ok());
    let mut walked = Vec::new();
    let walk = stage.fs.walk_inodes(&mut InodeWalk::new(), |node| {
        walked.push(node.ino().0);
        Ok(Visit::Continue)
    });
    assert_eq!(walk, Ok(()));
    (asked.collect(), walked)
}

/// Else somebody could change it in the store before it is there.
#[test]
fn an_inode_that_its_store_has_not_heard_of_is_found_by_nobody() {
    type Making = fn(&Stage);
    let makings: [Making; 3] = [
        |stage| drop(stage.open("new")),
        |stage| drop(stage.mkdir("new")),
        |stage| drop(stage.unnamed()),
    ];
    for making in makings {
        let (gate, stage) = gated(Call::Apply);
        gate.hook().arm();
        thread::scope(|scope| {
            let made = scope.spawn(|| making(&stage));
            gate.hook().wait();
            assert_eq!(known(&stage), (vec![1], vec![1]));
            assert_eq!(stage.lookup("new"), Err(Errno::ENOENT));
            gate.hook().open();
            made.join().unwrap();
        });
        assert!(stage.fs.inode_census().dying == 0);
    }
}

/// A whiteout has its name before its store has heard of it: who looks it up waits.
#[test]
fn a_whiteout_is_found_when_its_rename_is_over() {
    let (gate, stage) = gated(Call::Apply);
    drop(stage.open("old"));
    gate.hook().arm();
    thread::scope(|scope| {
        let renaming = scope.spawn(|| {
            let (who, root) = (&stage.who, &stage.root);
            let flags = RenameFlags::WHITEOUT;
            stage.fs.rename(who, root, b"old", root, b"new", flags)
        });
        gate.hook().wait();
        let looking = scope.spawn(|| {
            let node = stage.lookup("old")?;
            stage.fs.setattr(&stage.who, &node, &chmod(0o600), None)
        });
        let resolving = scope.spawn(|| {
            let node = stage.fs.resolve(&stage.who, &stage.root, b"old", true)?;
            stage.fs.setattr(&stage.who, &node, &chmod(0o600), None)
        });
        thread::sleep(Duration::from_millis(30));
        gate.hook().open();
        assert_eq!(renaming.join().unwrap(), Ok(()));
        for looking in [looking, resolving] {
            let found = looking.join().unwrap().unwrap();
            assert_eq!(found.kind, FileType::CharDevice);
        }
    });
    // The store never contradicted.
    drop(stage.mkdir("d"));
}
