//! Lookups and listings without locks, beside changes of the names.

use super::stage::{NOTHING, Stage, in_threads, race};
use holdfast_core::types::{Caller, Errno, Ino, OpenFlags, RenameFlags};
use holdfast_core::{DirEntry, EventMask, MemoryLimits, MemoryStore, Node, Options, Store};
use holdfast_testkit::store::ModelStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names of a directory and their inodes, `.` and `..` left out.
fn listed(stage: &Stage, dir: &Node) -> Vec<(Vec<u8>, Ino)> {
    let opened = stage.fs.open(&stage.who, dir, OpenFlags::empty()).unwrap();
    let mut names = Vec::new();
    let mut push = |entry: DirEntry<'_>| {
        if !matches!(entry.name, b"." | b"..") {
            names.push((entry.name.to_vec(), entry.ino));
        }
        true
    };
    stage.fs.read_dir(&opened, 0, &mut push).unwrap();
    names
}

fn rename(stage: &Stage, from: (&Node, &str), to: (&Node, &str), flags: RenameFlags) {
    let (from, to) = ((from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()));
    let renamed = stage
        .fs
        .rename(&stage.who, from.0, from.1, to.0, to.1, flags);
    assert_eq!(renamed, Ok(()));
}

#[test]
fn a_file_renamed_back_and_forth_is_listed_under_exactly_one_name() {
    for stage in Stage::each() {
        let ino = stage.open("a").node().ino();
        // More names, so that the directory also has the form for many.
        let many = stage.mkdir("many");
        for number in 0..300 {
            drop(stage.open_in(&many, &format!("n{number}")));
        }
        let moved = stage.open_in(&many, "a").node().ino();
        race(3, |thread| {
            for (dir, ino) in [(&stage.root, ino), (&many, moved)] {
                if thread == 0 {
                    rename(&stage, (dir, "a"), (dir, "b"), RenameFlags::empty());
                    rename(&stage, (dir, "b"), (dir, "a"), RenameFlags::NOREPLACE);
                    continue;
                }
                let names = listed(&stage, dir);
                let found: Vec<_> = names
                    .iter()
                    .filter(|(name, _)| matches!(&**name, b"a" | b"b"))
                    .collect();
                assert_eq!(found.len(), 1, "{found:?}");
                assert_eq!(found[0].1, ino);
            }
        });
    }
}

#[test]
fn a_name_that_is_replaced_or_exchanged_is_never_missing() {
    for stage in Stage::each() {
        let dir = stage.mkdir("d");
        for name in ["kept", "other"] {
            drop(stage.open(name));
        }
        drop(stage.open_in(&dir, "far"));
        race(4, |thread| match thread {
            0 => {
                drop(stage.open("new"));
                let root = &stage.root;
                rename(&stage, (root, "new"), (root, "kept"), RenameFlags::empty());
                rename(
                    &stage,
                    (root, "kept"),
                    (root, "other"),
                    RenameFlags::EXCHANGE,
                );
                rename(&stage, (root, "kept"), (&dir, "far"), RenameFlags::EXCHANGE);
            }
            1 => drop(stage.fs.drop_caches().unwrap()),
            _ => {
                for name in ["kept", "other"] {
                    let found = stage.lookup(name).unwrap();
                    assert!(found.ino() != Ino::ROOT);
                    let (who, root, name) = (&stage.who, &stage.root, name.as_bytes());
                    stage.fs.stat_at(who, root, name, true).unwrap();
                }
                stage.fs.lookup(&stage.who, &dir, b"far").unwrap();
                stage
                    .fs
                    .resolve(&stage.who, &stage.root, b"d/far", true)
                    .unwrap();
            }
        });
    }
}

/// A walk along a path that is renamed meanwhile finds the file or `ENOENT`.
#[test]
fn a_path_whose_directories_move_leads_to_the_file_or_nowhere() {
    for stage in Stage::each() {
        let (a, b) = (stage.mkdir("a"), stage.mkdir("b"));
        let inner = stage.fs.mkdir(&stage.who, &a, b"x", 0o700).unwrap();
        let ino = stage.open_in(&inner, "f").node().ino();
        race(4, |thread| match thread {
            0 => {
                rename(&stage, (&a, "x"), (&b, "y"), RenameFlags::empty());
                rename(&stage, (&b, "y"), (&a, "x"), RenameFlags::empty());
            }
            1 => drop(stage.fs.drop_caches().unwrap()),
            _ => {
                for path in [&b"a/x/f"[..], b"/b/y/f", b"a/x/../x/f", b"b/y/../y/f"] {
                    match stage.fs.stat_at(&stage.who, &stage.root, path, true) {
                        Ok(attr) => assert_eq!(attr.ino, ino),
                        Err(error) => assert_eq!(error, Errno::ENOENT, "{path:?}"),
                    }
                    match stage.fs.resolve(&stage.who, &stage.root, path, true) {
                        Ok(node) => assert_eq!(node.ino(), ino),
                        Err(error) => assert_eq!(error, Errno::ENOENT, "{path:?}"),
                    }
                }
                let parent = stage.fs.lookup(&stage.who, &inner, b"..").unwrap();
                assert!(parent == a || parent == b);
            }
        });
    }
}

#[test]
fn opening_with_create_makes_the_file_or_finds_it_whoever_removes_it_meanwhile() {
    for stage in Stage::each() {
        let made = AtomicU64::new(0);
        let meet = |thread| {
            if thread < 2 {
                drop(stage.open("f"));
                let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
                let opened = stage
                    .fs
                    .open_at(&stage.who, &stage.root, b"f", flags, 0o600);
                drop(opened.unwrap());
                let flags = flags | OpenFlags::EXCLUSIVE;
                match stage.fs.create(&stage.who, &stage.root, b"f", 0o600, flags) {
                    Ok(_) => made.fetch_add(1, Ordering::Relaxed),
                    Err(error) => {
                        assert_eq!(error, Errno::EEXIST);
                        0
                    }
                };
            } else if let Err(error) = stage.fs.unlink(&stage.who, &stage.root, b"f") {
                assert_eq!(error, Errno::ENOENT);
            }
        };
        // On a busy machine a single race may end without a meeting.
        for _ in 0..50 {
            race(4, meet);
            if made.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
        assert!(made.load(Ordering::Relaxed) > 0);
        let _ = stage.fs.unlink(&stage.who, &stage.root, b"f");
        assert_eq!(stage.held(), NOTHING);
    }
}

/// Events of names have the order of the changes.
#[test]
fn watchers_of_a_directory_can_rebuild_it_from_what_they_hear() {
    for stage in Stage::each() {
        let dir = stage.mkdir("d");
        let mask =
            EventMask::CREATE | EventMask::DELETE | EventMask::MOVED_FROM | EventMask::MOVED_TO;
        let watch = stage.fs.watch(&dir, mask).unwrap();
        in_threads(3, |thread| fight(&stage, &dir, thread as u64));
        let mut names = std::collections::BTreeSet::new();
        while let Some(event) = watch.try_next() {
            let name = event.name.unwrap();
            if event.mask.intersects(EventMask::CREATE) {
                assert!(names.insert(name), "made twice");
            } else if event
                .mask
                .intersects(EventMask::DELETE | EventMask::MOVED_FROM)
            {
                assert!(names.remove(&name), "removed twice");
            } else {
                assert!(
                    event.mask.intersects(EventMask::MOVED_TO),
                    "{:?}",
                    event.mask
                );
                names.insert(name);
            }
        }
        let listed: std::collections::BTreeSet<_> = listed(&stage, &dir)
            .into_iter()
            .map(|(name, _)| name.into_boxed_slice())
            .collect();
        assert_eq!(names, listed);
    }
}

/// Creates, removes and renames among few names, so that threads contend.
fn fight(stage: &Stage, dir: &Node, seed: u64) {
    let mut rng = holdfast_testkit::rng::Rng::new(seed);
    let (fs, who) = (&stage.fs, &stage.who);
    for _ in 0..1500 {
        let [a, b] = [rng.below(6), rng.below(6)].map(|n| format!("n{n}").into_bytes());
        match rng.below(3) {
            0 => {
                let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
                drop(fs.create(who, dir, &a, 0o600, flags).unwrap());
            }
            1 => drop(fs.unlink(who, dir, &a)),
            _ => drop(fs.rename(who, dir, &a, dir, &b, RenameFlags::empty())),
        }
    }
}

/// An exclusive create reserves space before it looks its name up: a refusal leaves nothing behind.
#[test]
fn a_create_that_is_refused_leaves_nothing_and_says_first_that_the_name_is_there() {
    let limits = MemoryLimits {
        inodes: Some(400),
        ..MemoryLimits::default()
    };
    for (store, few) in [
        (Arc::new(MemoryStore::new(limits)) as Arc<dyn Store>, true),
        (Arc::new(ModelStore::new()), false),
    ] {
        let stage = Stage::over(store, Options::default());
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let create = |who: &Caller, name: &str| {
            let made = stage
                .fs
                .open_at(who, &stage.root, name.as_bytes(), flags, 0o600);
            made.map(|file| file.node().ino())
        };
        let stranger = Caller::user(1000, 1000);
        // Few names, and many, which have another form.
        for made in [1, 300] {
            for number in 0..made {
                let _ = create(&stage.who, &format!("n{number}"));
            }
            let before = stage.held();
            for _ in 0..3 {
                assert_eq!(create(&stage.who, "n0"), Err(Errno::EEXIST));
                assert_eq!(create(&stranger, "n0"), Err(Errno::EEXIST));
                assert_eq!(create(&stranger, "new"), Err(Errno::EACCES));
            }
            assert_eq!(stage.held(), before);
        }
        if few {
            let full = (300..).map(|number| create(&stage.who, &format!("n{number}")));
            let errors: Vec<Errno> = full.take(200).filter_map(Result::err).collect();
            assert_eq!(errors, vec![Errno::ENOSPC; 101]);
            assert_eq!(create(&stage.who, "n0"), Err(Errno::EEXIST));
            assert_eq!(create(&stranger, "new"), Err(Errno::EACCES));
            stage.unlink("n0");
            assert!(create(&stage.who, "n0").is_ok());
        }
        assert_eq!(
            listed(&stage, &stage.root).len(),
            if few { 399 } else { 300 }
        );
    }
}
