//! F4, I2, I5, R-F2, R-I11: forced unmount.

use super::stage::{Held, NOTHING, Stage, gated, gated_over, in_threads};
use holdfast_core::store::Store;
use holdfast_core::types::{
    Access, Errno, Fallocate, FileType, OpenFlags, RenameFlags, SetAttr, Whence, XattrSet,
};
use holdfast_core::{
    Cancel, EventMask, FileSystem, LockKind, LockOwner, LockRange, LockSpace, Node, OpenFile,
    Options,
};
use holdfast_testkit::store::{Call, ModelStore, Noted, Record, Recorded, RecordingStore};
use parking_lot::Mutex;
use std::io::IoSliceMut;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// The remains of a revoked file system when all its handles are closed. A persistent store keeps
/// its contents.
fn emptied(space: (u64, u64)) -> Held {
    Held { space, ..NOTHING }
}

/// F4, R-F2.
#[test]
fn ten_opens_a_revocation_and_ten_closes_leave_nothing() {
    for stage in Stage::each() {
        let file = stage.open("f");
        stage.write(&file, 0, &[7; 10_000]);
        drop(file);
        let files: Vec<_> = (0..10).map(|_| stage.open("f")).collect();
        let orphans: Vec<_> = (0..10).map(|_| stage.unnamed()).collect();
        for orphan in &orphans {
            stage.write(orphan, 0, &[8; 5000]);
        }
        let watch = stage.fs.watch(&stage.root, EventMask::ALL_EVENTS).unwrap();
        assert_eq!(stage.fs.revoke(), Ok(()));
        assert_eq!(stage.held().open_files, 20);
        assert_eq!(stage.held().pages, 3 + 10 * 2, "content is the open file's");
        drop((files, orphans, watch));
        let durable = !stage.is_memory();
        let space = if durable { (3, 2) } else { (0, 1) };
        assert_eq!(stage.held(), emptied(space));
    }
}

type Operation = Box<dyn Fn(&Stage, &OpenFile, &OpenFile, &Node) -> Result<(), Errno>>;

/// Every operation with a result, on a file, an open directory, and a directory `d`.
fn operations() -> Vec<(&'static str, Operation)> {
    macro_rules! operations {
        ($($name:ident($stage:ident, $fs:ident, $file:ident, $dir:ident, $node:ident) $call:expr;)*) => {
            vec![$((stringify!($name), Box::new(
                |$stage: &Stage, $file: &OpenFile, $dir: &OpenFile, $node: &Node| {
                    let $fs: &FileSystem = &$stage.fs;
                    let _ = ($file, $dir, $node);
                    $call.map(drop)
                },
            ) as Operation)),*]
        };
    }
    let none = RenameFlags::empty();
    let empty = OpenFlags::empty();
    let _ = (none, empty);
    operations! {
        attributes(s, fs, f, d, n) fs.attributes(n);
        stat_at(s, fs, f, d, n) fs.stat_at(&s.who, n, b"f", true);
        resolve(s, fs, f, d, n) fs.resolve(&s.who, n, b"f", true);
        create_by_path(s, fs, f, d, n) fs.open_at(
            &s.who, n, b"f", OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY, 0o600,
        );
        resolve_parent(s, fs, f, d, n) fs.resolve_parent(&s.who, n, b"d/f");
        lookup(s, fs, f, d, n) fs.lookup(&s.who, n, b"f");
        node(s, fs, f, d, n) fs.node(n.ino());
        access(s, fs, f, d, n) fs.access(&s.who, n, Access::READ);
        readlink(s, fs, f, d, n) fs.readlink(n);
        setattr(s, fs, f, d, n) fs.setattr(&s.who, n, &SetAttr::default(), None);
        drop_privileges(s, fs, f, d, n) fs.drop_privileges(f.node());
        mknod(s, fs, f, d, n) fs.mknod(&s.who, n, b"new", FileType::Fifo, 0o600, 0);
        mkdir(s, fs, f, d, n) fs.mkdir(&s.who, n, b"new", 0o700);
        symlink(s, fs, f, d, n) fs.symlink(&s.who, n, b"new", b"to");
        link(s, fs, f, d, n) fs.link(&s.who, f.node(), n, b"new");
        unlink(s, fs, f, d, n) fs.unlink(&s.who, n, b"f");
        rmdir(s, fs, f, d, n) fs.rmdir(&s.who, &s.root, b"d");
        rename(s, fs, f, d, n) fs.rename(&s.who, n, b"f", n, b"g", RenameFlags::empty());
        mkdir_at(s, fs, f, d, n) fs.mkdir_at(&s.who, n, b"/d/new", 0o700);
        unlink_at(s, fs, f, d, n) fs.unlink_at(&s.who, n, b"f");
        rename_at(s, fs, f, d, n) fs.rename_at(&s.who, n, b"f", n, b"g", RenameFlags::empty());
        open(s, fs, f, d, n) fs.open(&s.who, n, OpenFlags::empty());
        open_at(s, fs, f, d, n) fs.open_at(&s.who, n, b"f", OpenFlags::empty(), 0);
        create(s, fs, f, d, n) fs.create(&s.who, n, b"f", 0o600, OpenFlags::READ_WRITE);
        tmpfile(s, fs, f, d, n) fs.tmpfile(&s.who, n, 0o600, OpenFlags::READ_WRITE);
        read(s, fs, f, d, n) fs.read(f, 0, &mut [0; 4]);
        read_vectored(s, fs, f, d, n) fs.read_vectored(f, 0, &mut [IoSliceMut::new(&mut [0])]);
        write(s, fs, f, d, n) fs.write(&s.who, f, 0, b"x");
        append(s, fs, f, d, n) fs.append(&s.who, f, b"x");
        seek(s, fs, f, d, n) fs.seek(f, 0, Whence::Data);
        fallocate(s, fs, f, d, n) fs.fallocate(&s.who, f, Fallocate::empty(), 0, 9);
        copy(s, fs, f, d, n) fs.copy_file_range(&s.who, f, 0, f, 9, 1);
        fsync(s, fs, f, d, n) fs.fsync(f, false);
        read_dir(s, fs, f, d, n) fs.read_dir(d, 0, &mut |_| true);
        read_dir_plus(s, fs, f, d, n) fs.read_dir_plus(d, 0, &mut |_, _| true);
        getxattr(s, fs, f, d, n) fs.getxattr(&s.who, n, b"user.x");
        setxattr(s, fs, f, d, n) fs.setxattr(&s.who, n, b"user.x", b"", XattrSet::Any);
        listxattr(s, fs, f, d, n) fs.listxattr(&s.who, n);
        removexattr(s, fs, f, d, n) fs.removexattr(&s.who, n, b"user.x");
        watch(s, fs, f, d, n) fs.watch(n, EventMask::ALL_EVENTS);
        statfs(s, fs, f, d, n) fs.statfs();
        sync(s, fs, f, d, n) fs.sync();
        get_lock(s, fs, f, d, n) fs.get_lock(
            n, LockOwner(1), LockSpace::Posix, LockKind::Read, LockRange::WHOLE
        );
        set_lock(s, fs, f, d, n) fs.set_lock(
            n, f.owner(), LockSpace::Flock, Some(LockKind::Read), LockRange::WHOLE, 1, None
        );
    }
}

#[test]
fn every_operation_on_a_revoked_file_system_fails_with_eio() {
    for stage in Stage::each() {
        let node = stage.mkdir("d");
        let file = stage.open_in(&node, "f");
        stage.write(&file, 0, b"bytes");
        let dir = stage
            .fs
            .open(&stage.who, &node, OpenFlags::empty())
            .unwrap();
        stage.fs.revoke().unwrap();
        for (name, operation) in operations() {
            let answer = operation(&stage, &file, &dir, &node);
            assert_eq!(answer, Err(Errno::EIO), "{name}");
        }
        // Operations that only release something succeed.
        stage
            .fs
            .release_locks(&node, file.owner(), LockSpace::Posix);
        stage.fs.forget(node.ino(), 1);
    }
}

/// I2, I5: an operation in progress leaves nothing unreachable behind.
#[test]
fn what_is_under_way_at_the_revocation_leaves_nothing() {
    for round in 0..60 {
        let [memory, model] = Stage::each();
        let stage = if round % 3 > 0 { memory } else { model };
        let kept = Mutex::new(Vec::new());
        let tmp = stage.unnamed();
        let dir = stage.mkdir("d");
        let start = Barrier::new(4);
        in_threads(4, |thread| {
            start.wait();
            if thread == 0 {
                return revoke_after(&stage, round * 200);
            }
            for number in 0.. {
                match work(&stage, &dir, &tmp, thread, number, &kept) {
                    Ok(()) => {}
                    Err(Errno::EIO) => return,
                    Err(error) => panic!("{error:?} of a file system that goes"),
                }
            }
        });
        drop((kept, tmp, dir));
        let space = stage.held().space;
        assert_eq!(stage.held(), emptied(space), "round {round}");
        if stage.is_memory() {
            assert_eq!(space, (0, 1), "round {round}");
        }
    }
}

/// Revokes after others have done some work.
fn revoke_after(stage: &Stage, spins: u32) {
    for _ in 0..spins {
        std::hint::spin_loop();
    }
    stage.fs.revoke().unwrap();
}

/// Creates, links, renames, writes, watches and locks; sometimes keeps the file open.
fn work(
    stage: &Stage,
    dir: &Node,
    tmp: &OpenFile,
    thread: usize,
    number: u32,
    kept: &Mutex<Vec<OpenFile>>,
) -> Result<(), Errno> {
    let (fs, who) = (&stage.fs, &stage.who);
    let name = format!("{thread}-{number}").into_bytes();
    let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
    let file = fs.create(who, dir, &name, 0o600, flags)?;
    fs.write(who, &file, 0, &[1; 5000])?;
    let other = format!("link{thread}-{number}").into_bytes();
    fs.link(who, tmp.node(), &stage.root, &other)?;
    fs.rename(who, dir, &name, &stage.root, &name, RenameFlags::empty())?;
    let watch = fs.watch(file.node(), EventMask::ALL_EVENTS)?;
    let (owner, space, kind) = (file.owner(), LockSpace::Flock, Some(LockKind::Write));
    fs.set_lock(file.node(), owner, space, kind, LockRange::WHOLE, 1, None)?;
    fs.lookup(who, &stage.root, &name)?;
    fs.stat_at(who, &stage.root, &name, true)?;
    drop(watch);
    if number.is_multiple_of(3) {
        fs.unlink(who, &stage.root, &name)?;
        kept.lock().push(file);
    }
    Ok(())
}

/// R-I11: watchers get the end, once, and nothing after it.
#[test]
fn watchers_hear_of_the_end_and_nothing_behind_it() {
    for stage in Stage::each() {
        let file = stage.open("f");
        let watches: Vec<_> = [&stage.root, file.node()]
            .map(|node| stage.fs.watch(node, EventMask::ALL_EVENTS).unwrap())
            .into();
        stage.unlink("f");
        stage.fs.revoke().unwrap();
        assert_eq!(stage.held().watches, 0);
        drop(file);
        for watch in &watches {
            let masks: Vec<_> = std::iter::from_fn(|| watch.try_next())
                .map(|event| event.mask)
                .collect();
            let end = &masks[masks.len() - 2..];
            assert_eq!(end, [EventMask::UNMOUNT, EventMask::IGNORED]);
            let unmounts = masks.iter().filter(|mask| **mask == EventMask::UNMOUNT);
            assert_eq!(unmounts.count(), 1);
        }
    }
}

/// R-I11: a new watch races with the revocation and its release of the watches.
#[test]
fn a_watch_beside_the_revocation_is_refused_or_hears_of_it() {
    for round in 0..200 {
        let stage = Stage::memory();
        let start = Barrier::new(2);
        in_threads(2, |thread| {
            start.wait();
            if thread == 0 {
                return revoke_after(&stage, round);
            }
            loop {
                match stage.fs.watch(&stage.root, EventMask::ALL_EVENTS) {
                    Err(error) => break assert_eq!(error, Errno::EIO),
                    Ok(watch) => {
                        if stage.fs.is_revoked() {
                            let end = watch.next_timeout(Duration::from_secs(20));
                            assert_eq!(end.unwrap().mask, EventMask::UNMOUNT);
                            break;
                        }
                    }
                }
            }
        });
        assert_eq!(stage.held().watches, 0);
    }
}

/// I5: an inode that is loaded during the revocation is dropped too.
#[test]
fn an_inode_loaded_beside_the_revocation_does_not_stay() {
    let (gate, stage) = gated(Call::LoadRests);
    let ino = stage.labelled("f");
    stage.fs.drop_caches().unwrap();
    gate.hook().arm();
    thread::scope(|scope| {
        let loading = scope.spawn(|| stage.fs.node(ino));
        gate.hook().wait();
        stage.fs.revoke().unwrap();
        gate.hook().open();
        drop(loading.join().unwrap());
    });
    assert_eq!(stage.held().inodes, 1);
}

/// `link`, which makes an unnamed file permanent, races with the revocation.
#[test]
fn a_link_beside_the_revocation_saves_nothing() {
    for round in 0..300 {
        let stage = Stage::memory();
        let file = stage.unnamed();
        let start = Barrier::new(2);
        in_threads(2, |thread| {
            start.wait();
            if thread == 0 {
                return revoke_after(&stage, round);
            }
            for name in 0..20_u32 {
                let name = name.to_le_bytes().map(|byte| byte + 1);
                let _ = stage.fs.link(&stage.who, file.node(), &stage.root, &name);
            }
        });
        drop(file);
        assert_eq!(stage.held(), NOTHING, "round {round}");
    }
}

/// A change that succeeded before the revocation returned is durable when it has returned.
#[test]
fn what_was_done_while_the_revocation_began_is_made_durable() {
    let record = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    let (gate, stage) = gated_over(Call::Commit, Arc::clone(&record) as Arc<dyn Store>);
    let file = stage.open("f");
    gate.hook().arm();
    thread::scope(|scope| {
        let revoking = scope.spawn(|| stage.fs.revoke());
        gate.hook().wait();
        stage.write(&file, 0, b"answered with success");
        gate.hook().open();
        assert_eq!(revoking.join().unwrap(), Ok(()));
    });
    let events = record.hook().events();
    let is_write = |event: &Recorded| {
        let Recorded::Batch(batch) = event else {
            return false;
        };
        batch.contains(&Noted::Write)
    };
    let written = events.iter().position(is_write).unwrap();
    let committed = |event: &Recorded| matches!(event, Recorded::Commit(None));
    assert!(events[written..].iter().any(committed), "{events:?}");
}

/// After a revocation, a new file system over the same store finds everything.
#[test]
fn the_store_serves_the_next_file_system_while_old_handles_are_open() {
    let store = Arc::new(ModelStore::new());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let file = stage.open("f");
    stage.write(&file, 0, b"old");
    stage.fs.revoke().unwrap();
    let next = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    assert_eq!(
        stage.fs.write(&stage.who, &file, 0, b"new"),
        Err(Errno::EIO)
    );
    drop(file);
    let mut bytes = [0; 4];
    let file = next.open("f");
    assert_eq!(next.fs.read(&file, 0, &mut bytes), Ok(3));
    assert_eq!(&bytes, b"old\0");
    assert_eq!(store.contradictions(), [""; 0]);
}

#[test]
fn a_revocation_ends_all_locks_and_all_waits_for_them() {
    for stage in Stage::each() {
        // The root, which stays, and a file that is otherwise unreferenced.
        let nodes = [stage.root.clone(), stage.open("f").node().clone()];
        let cancel = Cancel::new();
        for node in &nodes {
            for (space, owner) in [(LockSpace::Posix, 1), (LockSpace::Flock, 2)] {
                let (owner, kind) = (LockOwner(owner), Some(LockKind::Write));
                let all = LockRange::WHOLE;
                let set = stage.fs.set_lock(node, owner, space, kind, all, 1, None);
                assert_eq!(set, Ok(()));
            }
        }
        thread::scope(|scope| {
            let waits: Vec<_> = nodes
                .iter()
                .flat_map(|node| [(node, LockSpace::Posix), (node, LockSpace::Flock)])
                .map(|(node, space)| {
                    let (fs, cancel) = (&stage.fs, &cancel);
                    let (owner, kind) = (LockOwner(3), Some(LockKind::Read));
                    let all = LockRange::WHOLE;
                    scope.spawn(move || fs.set_lock(node, owner, space, kind, all, 1, Some(cancel)))
                })
                .collect();
            thread::sleep(Duration::from_millis(30));
            stage.fs.revoke().unwrap();
            for wait in waits {
                assert_eq!(wait.join().unwrap(), Err(Errno::EIO));
            }
        });
        assert_eq!(stage.held().locks, 0);
        // Owners may release locks that no longer exist.
        stage
            .fs
            .release_locks(&stage.root, LockOwner(1), LockSpace::Posix);
        assert_eq!(stage.held().locks, 0);
    }
}
