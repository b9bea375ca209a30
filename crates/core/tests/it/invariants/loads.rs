//! I1, R-I8: a loaded inode is the store's latest version, and no thread finds an unfinished one.

use super::stage::{Stage, gated, in_threads};
use crate::kept::acl;
use holdfast_core::store::Store;
use holdfast_core::types::{
    Caller, Errno, FileType, Ino, OpenFlags, RenameFlags, SetAttr, XattrSet,
};
use holdfast_core::{Bulkstat, InodeWalk, Node, Options, Visit};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::store::{Call, Latency, ModelStore, Record, SlowStore, Wrapped};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

fn chmod(perm: u16) -> SetAttr {
    SetAttr {
        perm: Some(perm),
        ..SetAttr::default()
    }
}

/// An inode's record is read, and the inode is changed and evicted before it is installed: the
/// record is stale.
#[test]
fn an_inode_that_changes_while_it_is_loaded_shows_the_change() {
    let (gate, stage) = gated(Call::LoadRests);
    let ino = stage.labelled("f");
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

/// A lookup by number fails; a scan continues behind it.
#[test]
fn an_inode_that_is_freed_while_it_is_loaded_is_no_corruption() {
    for scan in [false, true] {
        let (gate, stage) = gated(Call::LoadRests);
        let ino = stage.labelled("f");
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

/// Removing files in the order of their creation reads many of them in each call of the store.
#[test]
fn inodes_that_are_wanted_one_after_the_other_come_together() {
    let store = Wrapped::new(Arc::new(ModelStore::new()), Record::default());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let name = |number: u64| format!("file-{number:04}");
    let asked = |call| store.hook().count(call);
    let cold = |change: &dyn Fn(&str, u64)| {
        stage.fs.drop_caches().unwrap();
        store.hook().clear();
        for number in 0..1000 {
            change(&name(number), number);
        }
        asked(Call::LoadInodes) + asked(Call::Walk)
    };
    for number in 0..1000 {
        drop(stage.open(&name(number)));
    }
    let perm = |number: u64| 0o600 + (number % 8) as u16;
    let loads = cold(&|name, number| {
        let node = stage.lookup(name).unwrap();
        let set = stage
            .fs
            .setattr(&stage.who, &node, &chmod(perm(number)), None);
        assert_eq!(set.map(|attr| attr.perm), Ok(perm(number)));
    });
    assert!(loads < 20, "{loads} loads of 1000 inodes");
    assert_eq!(asked(Call::LoadRests), 0);
    let loads = cold(&|name, number| {
        assert_eq!(
            stage.fs.getattr(&stage.lookup(name).unwrap()).perm,
            perm(number)
        );
        stage.unlink(name);
    });
    assert!(loads < 20, "{loads} loads of 1000 inodes");
    assert_eq!(stage.held().inodes, 1);
    let left = stage.fs.bulkstat(&mut Bulkstat::new(), |node, _| {
        assert_eq!(node.ino(), Ino::ROOT);
        Ok(Visit::Continue)
    });
    assert_eq!(left, Ok(()));
}

/// In each directory numbers ascend in the order of creation, though not across directories.
#[test]
fn files_made_in_turn_in_many_directories_are_removed_so_with_few_loads() {
    const DIRS: u64 = 50;
    const FILES: u64 = 10_000;
    let store = Wrapped::new(Arc::new(ModelStore::new()), Record::default());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let dirs: Vec<_> = (0..DIRS).map(|dir| format!("d{dir}")).collect();
    for dir in &dirs {
        stage.mkdir(dir);
    }
    // Any order without a pattern of directories; the same both times.
    let each = |change: &dyn Fn(&Node, &str)| {
        let dirs: Vec<Node> = dirs.iter().map(|dir| stage.lookup(dir).unwrap()).collect();
        let mut rng = Rng::new(1);
        for file in 0..FILES {
            change(rng.pick(&dirs), &format!("file-{file}"));
        }
    };
    let (fs, who) = (&stage.fs, &stage.who);
    each(&|dir, name| {
        let made = fs.mknod(who, dir, name.as_bytes(), FileType::Regular, 0o600, 0);
        drop(made.unwrap());
    });
    stage.fs.drop_caches().unwrap();
    store.hook().clear();
    each(&|dir, name| fs.unlink(who, dir, name.as_bytes()).unwrap());
    let asked = |call| store.hook().count(call);
    let loads = asked(Call::LoadInodes) + asked(Call::Walk);
    // Some when a directory begins, and when its numbers continue elsewhere: after 16, 64, 256.
    assert!(loads < 20 * DIRS, "{loads} loads of {FILES} inodes");
}

/// Symbolic links and inodes with extended attributes are loaded in runs as well.
#[test]
fn what_more_there_is_to_an_inode_comes_together_too() {
    let store = Wrapped::new(Arc::new(ModelStore::new()), Record::default());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let (fs, who, root) = (&stage.fs, &stage.who, &stage.root);
    let name = |number: u64| format!("{number:03}");
    for number in 0..300 {
        let name = name(number);
        match number % 3 {
            0 => drop(stage.open(&name)),
            1 => drop(stage.labelled(&name)),
            _ => drop(
                fs.symlink(who, root, name.as_bytes(), name.as_bytes())
                    .unwrap(),
            ),
        }
    }
    let orphan = stage.labelled("orphan");
    let orphan = (stage.fs.node(orphan).unwrap(), stage.unlink("orphan")).0;
    fs.drop_caches().unwrap();
    store.hook().clear();
    for number in 0..300 {
        let node = stage.lookup(&name(number)).unwrap();
        match number % 3 {
            0 => assert_eq!(fs.listxattr(who, &node), Ok(Vec::new())),
            1 => assert_ne!(fs.listxattr(who, &node), Ok(Vec::new())),
            _ => assert_eq!(fs.readlink(&node).as_deref(), Ok(name(number).as_bytes())),
        }
    }
    let asked = |call| store.hook().count(call);
    let loads = asked(Call::LoadRests);
    assert!(loads < 15, "{loads} loads of 200 of them");
    drop(orphan);
}

/// The numbers that lookups find, and those that a walk visits.
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

/// Otherwise it could be changed in the store before it exists there.
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

/// A whiteout has its name before the store has it: a lookup waits.
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
    // The store reported no inconsistency.
    drop(stage.mkdir("d"));
}

/// Concurrent changes of one inode reach the store in their order.
#[test]
fn what_the_store_keeps_is_what_was_seen_last() {
    // A slow store makes them queue up, and a wrong order likely.
    let latency = Latency::new(Duration::ZERO, Duration::from_micros(20));
    let store = SlowStore::new(Arc::new(ModelStore::new()), latency);
    let stage = Stage::over(store, Options::default());
    let names = [&b"user.x"[..], b"system.posix_acl_access"];
    let seen = |who: &Caller| {
        let node = stage.lookup("f").unwrap();
        let mut attr = stage.fs.getattr(&node);
        attr.blocks = 0;
        let values = names.map(|name| stage.fs.getxattr(who, &node, name));
        (attr, values)
    };
    for _ in 0..40 {
        let file = stage.open("f");
        in_threads(3, |thread| {
            let thread = thread as u16;
            let (fs, who, node) = (&stage.fs, &stage.who, file.node());
            for round in 0..4_u16 {
                let value = (thread * 4 + round).to_le_bytes();
                fs.setxattr(who, node, names[0], &value, XattrSet::Any)
                    .unwrap();
                let value = acl((thread + round) % 8);
                fs.setxattr(who, node, names[1], &value, XattrSet::Any)
                    .unwrap();
                fs.setattr(who, node, &chmod(0o700 + thread), None).unwrap();
                fs.append(who, &file, b"x").unwrap();
            }
        });
        drop(file);
        let before = seen(&stage.who);
        assert_eq!(stage.fs.drop_caches().map(|dropped| dropped.inodes), Ok(1));
        assert_eq!(seen(&stage.who), before);
        let flags = OpenFlags::READ_WRITE | OpenFlags::TRUNCATE;
        let node = stage.lookup("f").unwrap();
        drop(stage.fs.open(&stage.who, &node, flags).unwrap());
    }
}
