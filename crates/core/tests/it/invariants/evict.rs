//! I3, I5, F4, R-I5, R-I7, R-I8: eviction beside users.

use super::stage::{NOTHING, Stage, race};
use holdfast_core::store::Store;
use holdfast_core::types::{Errno, Ino, OpenFlags, Time};
use holdfast_core::{AtimePolicy, LockKind, LockOwner, LockRange, LockSpace, Options};
use holdfast_testkit::store::ModelStore;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// I5.
#[test]
fn what_nobody_uses_is_gone_after_the_eviction_and_comes_back_as_it_was() {
    let stage = Stage::model();
    let dir = stage.mkdir("d");
    for number in 0..200_u32 {
        let file = stage.open_in(&dir, &format!("f{number}"));
        stage.write(&file, 0, &number.to_le_bytes());
    }
    let used = stage.held().space;
    drop(dir);
    let dropped = stage.fs.drop_caches().unwrap();
    assert_eq!((dropped.inodes, dropped.names), (201, 200));
    let held = stage.held();
    assert_eq!((held.inodes, held.names, held.pages), (1, 1, 0));
    assert_eq!(held.space, used, "the store still holds it");
    assert_eq!(stage.fs.inode_census().dying, 0);
    let dir = stage.lookup("d").unwrap();
    for number in 0..200_u32 {
        let file = stage.open_in(&dir, &format!("f{number}"));
        let mut bytes = [0; 5];
        assert_eq!(stage.fs.read(&file, 0, &mut bytes), Ok(4));
        assert_eq!(bytes[..4], number.to_le_bytes());
    }
}

/// I5.
#[test]
fn threads_that_divide_an_eviction_leave_nothing_and_take_nothing_twice() {
    let stage = Stage::model();
    for number in 0..500 {
        drop(stage.open(&format!("f{number}")));
    }
    let sum = AtomicU64::new(0);
    race(3, |_| {
        let dropped = stage.fs.drop_caches().unwrap();
        sum.fetch_add(dropped.inodes, Ordering::Relaxed);
    });
    assert_eq!(sum.into_inner(), 500);
    assert_eq!(stage.held().inodes, 1);
}

/// Enough inodes to be divided among several threads.
const MANY: u64 = 70_000;

/// I3, I5.
#[test]
fn many_inodes_go_by_several_threads_but_for_those_in_use() {
    let stage = Stage::model();
    let mut used = Vec::new();
    for number in 0..MANY {
        let file = stage.open(&format!("f{number}"));
        if number % 10_000 == 0 {
            used.push(file);
        }
    }
    let dropped = stage.fs.drop_caches().unwrap();
    assert_eq!(dropped.inodes, MANY - used.len() as u64);
    assert_eq!(stage.held().inodes, 1 + used.len() as u64);
    used.clear();
    assert_eq!(stage.fs.drop_caches().unwrap().inodes, 7);
    assert_eq!(stage.held().inodes, 1);
}

/// F4, I5.
#[test]
fn many_inodes_are_revoked_by_several_threads_and_what_is_open_goes_with_its_last_close() {
    let stage = Stage::memory();
    let mut open = Vec::new();
    for number in 0..MANY {
        let file = stage.open(&format!("f{number}"));
        if number % 1000 == 0 {
            open.push(file);
        }
    }
    stage.fs.revoke().unwrap();
    assert_eq!(stage.fs.stats().inodes, 1 + open.len() as u64);
    open.truncate(30);
    assert_eq!(stage.fs.stats().inodes, 31);
    let fs = stage.fs.clone();
    drop(stage);
    drop(fs);
    drop(open);
}

/// I3.
#[test]
fn what_is_in_use_is_never_evicted() {
    let stage = Stage::model();
    let file = stage.open("f");
    stage.write(&file, 0, b"kept");
    race(4, |thread| {
        if thread < 2 {
            stage.fs.drop_caches().unwrap();
        } else {
            let found = stage.lookup("f").unwrap();
            assert!(&found == file.node(), "one object for one number");
            assert_eq!(stage.fs.getattr(&found).size, 4);
            let raw = found.into_raw();
            assert!(&stage.fs.node(raw).unwrap() == file.node());
            stage.fs.forget(raw, 1);
        }
    });
    drop(file);
    stage.unlink("f");
    assert_eq!(stage.held().inodes, 1);
}

/// R-I8, R-I7: eviction beside lookup, open, read, write and unlink; no written byte is lost.
#[test]
fn eviction_beside_users_loses_and_repeats_nothing() {
    let store = Arc::new(ModelStore::new());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    for number in 0..8 {
        drop(stage.open(&format!("lasting{number}")));
    }
    let written: Vec<_> = (0..8).map(|_| Mutex::new(0_u64)).collect();
    race(4, |thread| {
        if thread == 0 {
            stage.fs.drop_caches().unwrap();
            return;
        }
        for (number, written) in written.iter().enumerate() {
            let mut written = written.lock();
            let file = stage.open(&format!("lasting{number}"));
            let mut bytes = [0; 8];
            let read = stage.fs.read(&file, 5000, &mut bytes).unwrap();
            assert!(read == 8 || *written == 0);
            assert_eq!(u64::from_le_bytes(bytes), *written);
            *written += 1;
            stage.write(&file, 5000, &written.to_le_bytes());
        }
        let name = format!("passing{thread}");
        drop(stage.open(&name));
        stage.lookup(&name).unwrap();
        stage.unlink(&name);
        assert_eq!(stage.lookup(&name), Err(Errno::ENOENT));
    });
    assert_eq!(store.contradictions(), [""; 0]);
    stage.fs.drop_caches().unwrap();
    assert_eq!(stage.fs.stats().inodes, 1);
}

/// The last reference of an orphan is dropped while its number is looked up.
#[test]
fn an_orphan_is_found_by_number_whole_or_not_at_all() {
    for stage in Stage::each() {
        let number = AtomicU64::new(0);
        race(4, |thread| {
            if thread == 0 {
                let file = stage.open("f");
                stage.write(&file, 0, b"orphan");
                number.store(file.node().ino().0, Ordering::Relaxed);
                stage.unlink("f");
                drop(file);
                let gone = stage.fs.node(Ino(number.load(Ordering::Relaxed)));
                // Another thread may still hold it, but no thread finds it with a name.
                if let Ok(node) = gone {
                    assert_eq!(stage.fs.getattr(&node).nlink, 0);
                }
                return;
            }
            let ino = Ino(number.load(Ordering::Relaxed));
            match stage.fs.node(ino) {
                Ok(node) => {
                    assert_eq!(node.ino(), ino);
                    let opened = stage.fs.open(&stage.who, &node, OpenFlags::empty());
                    let mut bytes = [0; 9];
                    let read = stage.fs.read(&opened.unwrap(), 0, &mut bytes).unwrap();
                    assert!(matches!(&bytes[..read], b"" | b"orphan"));
                }
                Err(error) => assert_eq!(error, Errno::ESTALE),
            }
        });
        assert_eq!(stage.held(), NOTHING);
    }
}

/// A file lock lasts until its owner releases it, even if the inode is otherwise unreferenced.
#[test]
fn eviction_takes_no_lock_away() {
    let stage = Stage::model();
    for number in 0..4 {
        drop(stage.open(&format!("f{number}")));
    }
    race(4, |thread| {
        if thread < 2 {
            stage.fs.drop_caches().unwrap();
            return;
        }
        let name = format!("f{thread}");
        let (mine, other) = (LockOwner(1), LockOwner(2));
        let (space, kind, all) = (LockSpace::Posix, LockKind::Write, LockRange::WHOLE);
        let lock = |kind| {
            let node = stage.lookup(&name).unwrap();
            let set = stage.fs.set_lock(&node, mine, space, kind, all, 1, None);
            assert_eq!(set, Ok(()));
        };
        lock(Some(kind));
        let node = stage.lookup(&name).unwrap();
        let found = stage.fs.get_lock(&node, other, space, kind, all).unwrap();
        assert_eq!(found.map(|lock| lock.owner), Some(mine));
        drop(node);
        lock(None);
    });
    assert_eq!(stage.held().locks, 0);
}

#[test]
fn locks_that_nobody_released_go_with_their_inode() {
    for stage in Stage::each() {
        let file = stage.open("f");
        for (space, owner) in [(LockSpace::Posix, 7), (LockSpace::Flock, 8)] {
            let (owner, kind) = (LockOwner(owner), Some(LockKind::Read));
            let all = LockRange::WHOLE;
            let set = stage
                .fs
                .set_lock(file.node(), owner, space, kind, all, 1, None);
            assert_eq!(set, Ok(()));
        }
        assert_eq!(stage.held().locks, 2);
        stage.unlink("f");
        drop(file);
        assert_eq!(stage.held(), NOTHING);
    }
}

/// A time that `lazytime` keeps back reaches the store before the inode is evicted.
#[test]
fn an_access_time_never_goes_back_because_of_an_eviction() {
    let options = Options {
        lazytime: true,
        atime: AtimePolicy::Strict,
        ..Options::default()
    };
    let stage = Stage::over(Arc::new(ModelStore::new()), options);
    drop(stage.open("f"));
    let latest = Mutex::new(Time(0));
    race(3, |thread| {
        if thread > 0 {
            stage.fs.drop_caches().unwrap();
            return;
        }
        let file = stage.open("f");
        let mut latest = latest.lock();
        assert!(stage.fs.getattr(file.node()).atime >= *latest);
        stage.fs.read(&file, 0, &mut [0]).unwrap();
        *latest = stage.fs.getattr(file.node()).atime;
        drop(file);
        thread::sleep(Duration::from_micros(300));
    });
}

/// The number of a file system is reused after its end; a node may outlive it.
#[test]
fn a_node_that_outlives_its_file_system_ends_in_no_other() {
    let old = Stage::memory();
    let file = old.unnamed();
    let node = file.node().clone();
    drop((file, old));
    // Several, as any of them may get the number.
    let others: Vec<_> = (0..4).map(|_| Stage::memory()).collect();
    // The same inode number is used there.
    let files: Vec<_> = others.iter().map(Stage::unnamed).collect();
    drop(node);
    for (stage, file) in others.iter().zip(files) {
        assert_eq!(stage.held().inodes, 2);
        assert_eq!(stage.fs.getattr(file.node()).nlink, 0);
        drop(file);
        assert_eq!(stage.held(), NOTHING);
    }
}

/// F4: a removed inode frees its space, whether or not it is in memory.
#[test]
fn an_inode_that_was_evicted_gives_its_space_back_when_it_is_removed() {
    let stage = Stage::model();
    let file = stage.open("f");
    stage.write(&file, 100, &[1; 5000]);
    stage.write(&file, 5 * 4096, b"behind a hole");
    drop(file);
    assert_eq!(stage.held().space, (3, 2));
    stage.fs.drop_caches().unwrap();
    stage.unlink("f");
    assert_eq!(stage.held(), NOTHING);
}

/// F4: the last close may follow the last handle of the file system, when the file is unreachable.
#[test]
fn an_orphan_is_freed_with_its_file_system_though_it_is_open() {
    let store = Arc::new(ModelStore::new());
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let file = stage.unnamed();
    stage.write(&file, 0, &[1; 5000]);
    assert_eq!(store.space().map(|space| space.pages_used), Ok(2));
    drop(stage);
    let space = store.space().unwrap();
    assert_eq!((space.pages_used, space.inodes_used), (0, 1));
    let mut left = Vec::new();
    store.walk().unwrap().walk(Ino(0), 10, &mut left).unwrap();
    assert_eq!(left.len(), 1, "the root");
    drop(file);
    assert_eq!(store.space().map(|space| space.inodes_used), Ok(1));
}
