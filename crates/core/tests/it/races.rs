//! Concurrent operations: what one thread sees of another's change.

use holdfast_core::types::{Caller, Errno, Ino, OpenFlags, RenameFlags, SetAttr};
use holdfast_core::{FileSystem, MemoryLimits, Node, Options, Store as _};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::store::ModelStore;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

fn memory() -> FileSystem {
    FileSystem::memory(MemoryLimits::default(), Options::default())
}

#[test]
fn each_batch_leaves_a_store_with_attributes_that_fit_names_and_bytes() {
    const ROUNDS: u16 = 2000;
    let store = Arc::new(ModelStore::new());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let make = |name: &[u8]| fs.mkdir(&who, &root, name, 0o755).unwrap();
    let (one, other, moved) = (make(b"one"), make(b"other"), make(b"moved"));
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE;
    let file = fs.create(&who, &one, b"file", 0o644, flags).unwrap();
    let change = |node: &Node, perm| {
        let perm = Some(perm & 0o777);
        let set = SetAttr {
            perm,
            ..SetAttr::default()
        };
        fs.setattr(&who, node, &set, None).unwrap();
    };
    let attributes = || {
        for round in 0..ROUNDS {
            change(file.node(), round);
            change(&one, round);
            change(&moved, round);
        }
    };
    let names = || {
        for _ in 0..ROUNDS {
            fs.link(&who, file.node(), &other, b"again").unwrap();
            fs.mkdir(&who, &one, b"dir", 0o755).unwrap();
            fs.rmdir(&who, &one, b"dir").unwrap();
            fs.unlink(&who, &other, b"again").unwrap();
        }
    };
    let moves = || {
        let none = RenameFlags::empty();
        for _ in 0..ROUNDS {
            fs.rename(&who, &root, b"moved", &one, b"moved", none)
                .unwrap();
            fs.rename(&who, &one, b"moved", &root, b"moved", none)
                .unwrap();
        }
    };
    let sizes = || {
        for round in 0..u64::from(ROUNDS) {
            fs.write(&who, &file, round * 10, &[7; 20]).unwrap();
            let size = Some(round * 5);
            let set = SetAttr {
                size,
                ..SetAttr::default()
            };
            fs.setattr(&who, file.node(), &set, None).unwrap();
        }
    };
    thread::scope(|scope| {
        let kinds: [&(dyn Fn() + Sync); 4] = [&attributes, &names, &moves, &sizes];
        // Joined one by one: the sanitizers do not see the end of a scope.
        for thread in kinds.map(|kind| scope.spawn(kind)) {
            let _ = thread.join();
        }
    });
    assert_eq!(store.refusal(), None);
    assert_eq!(store.contradictions(), [""; 0]);
}

#[test]
fn a_file_over_a_store_gets_another_name_or_ends_when_it_loses_one() {
    const ROUNDS: usize = 3000;
    let store = Arc::new(ModelStore::new());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root, meet) = (Caller::root(), fs.root(), Barrier::new(2));
    thread::scope(|scope| {
        let linker = scope.spawn(|| {
            for _ in 0..ROUNDS {
                meet.wait();
                let file = fs.lookup(&who, &root, b"f");
                let linked = file.and_then(|file| fs.link(&who, &file, &root, b"g"));
                meet.wait();
                match linked {
                    Ok(()) => {
                        let left = fs.lookup(&who, &root, b"g").unwrap();
                        assert_eq!(fs.getattr(&left).nlink, 1);
                        drop(left);
                        fs.unlink(&who, &root, b"g").unwrap();
                    }
                    Err(Errno::ENOENT) => {}
                    Err(other) => panic!("{other:?}"),
                }
                meet.wait();
            }
        });
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        for round in 0..ROUNDS {
            drop(fs.create(&who, &root, b"f", 0o644, flags).unwrap());
            if round % 3 == 0 {
                // It has to be loaded.
                fs.drop_caches().unwrap();
            }
            meet.wait();
            fs.unlink(&who, &root, b"f").unwrap();
            meet.wait();
            meet.wait();
        }
        linker.join().unwrap();
    });
    assert_eq!(fs.stats().inodes, 1);
    let mut left = Vec::new();
    store.walk().unwrap().walk(Ino(0), 9, &mut left).unwrap();
    assert!(left.iter().all(|inode| inode.ino == root.ino()), "{left:?}");
}

#[test]
fn a_rename_that_leaves_much_room_holds_no_child_while_it_locks_the_parent() {
    let fs = memory();
    let (who, root, done) = (Caller::root(), fs.root(), AtomicBool::new(false));
    let below = fs.mkdir(&who, &root, b"below", 0o755).unwrap();
    drop(fs.mkdir(&who, &below, b"always", 0o755).unwrap());
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    thread::scope(|scope| {
        // Locks the names of the parent, then those of the directory: the order that renames have
        // to keep.
        let remover = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let refused = fs.rmdir(&who, &root, b"below");
                assert_eq!(refused, Err(Errno::ENOTEMPTY));
            }
        });
        for _ in 0..300 {
            // Enough names to grow the directory's index and to shrink it again.
            let names: Vec<_> = (0..150).map(|number| format!("f{number}")).collect();
            for name in &names {
                drop(
                    fs.create(&who, &root, name.as_bytes(), 0o644, flags)
                        .unwrap(),
                );
            }
            for name in &names {
                let over = RenameFlags::empty();
                fs.rename(&who, &root, name.as_bytes(), &below, b"kept", over)
                    .unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        remover.join().unwrap();
    });
}

#[test]
fn moves_of_files_and_of_directories_leave_a_tree() {
    let fs = memory();
    let (who, root) = (Caller::root(), fs.root());
    let dirs = [&b"a"[..], b"b", b"c"].map(|name| fs.mkdir(&who, &root, name, 0o755).unwrap());
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE;
    for (dir, name) in dirs.iter().zip([b"f1", b"f2", b"f3"]) {
        drop(fs.create(&who, dir, name, 0o644, flags).unwrap());
        fs.mkdir(&who, dir, &[b"d", &name[1..]].concat(), 0o755)
            .unwrap();
    }
    thread::scope(|scope| {
        let movers = [0_u64, 1, 2].map(|mover| {
            let (fs, dirs) = (&fs, &dirs);
            scope.spawn(move || {
                let who = Caller::root();
                let mut rng = Rng::new(mover);
                let mut next = |below: u64| rng.below(below);
                // Names that are files and directories in turn, and directories moved into each
                // other.
                let names = [&b"f1"[..], b"f2", b"f3", b"d1", b"d2", b"d3"];
                for _ in 0..20_000 {
                    let exchange = next(2) == 0;
                    let flags = if exchange {
                        RenameFlags::EXCHANGE
                    } else {
                        RenameFlags::NOREPLACE
                    };
                    let (from, to) = (&dirs[next(3) as usize], &dirs[next(3) as usize]);
                    let names = [names[next(6) as usize], names[next(6) as usize]];
                    // Now and then one of the three is moved into another and back.
                    let renamed = match next(50) {
                        0 => fs.rename(&who, &fs.root(), b"a", from, b"a", flags),
                        1 => fs.rename(&who, from, b"a", &fs.root(), b"a", flags),
                        _ => fs.rename(&who, from, names[0], to, names[1], flags),
                    };
                    match renamed {
                        Ok(())
                        | Err(Errno::ENOENT | Errno::EEXIST | Errno::EINVAL | Errno::ENOTEMPTY) => {
                        }
                        other => panic!("{other:?}"),
                    }
                }
            })
        });
        // Joined one by one: the sanitizers do not see the end of a scope.
        for mover in movers {
            mover.join().unwrap();
        }
    });
    // All three directories and all six others are below the root, each once.
    let (mut met, mut open) = (0, vec![root]);
    while let Some(dir) = open.pop() {
        let listing = fs.open(&who, &dir, OpenFlags::empty()).unwrap();
        let mut below = 0;
        fs.read_dir(&listing, 0, &mut |entry| {
            if entry.name != b"." && entry.name != b".." {
                met += 1;
                if entry.kind.is_dir() {
                    below += 1;
                    open.push(fs.node(entry.ino).unwrap());
                }
            }
            true
        })
        .unwrap();
        assert_eq!(fs.getattr(&dir).nlink, below + 2);
    }
    assert_eq!(met, 3 + 6);
}
