//! Operations that wait for room, which only a checkpoint makes, block no other user of their
//! directory or files.

use super::names_are_known;
use super::others::PATIENCE;
use super::world::{LARGE, PAGE, PART, World, bytes};
use holdfast_core::DirEntry;
use holdfast_types::{Caller, OpenFlags, SetAttr, XattrSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// What takes some of the journal, done for the n-th time. All of it in one directory.
type Kind = (&'static str, fn(&World, u64));

const KINDS: &[Kind] = &[
    ("mkdir", |world, n| {
        let path = format!("/mine/directory {n}");
        let root = world.fs.root();
        let made = world
            .fs
            .mkdir_at(&Caller::root(), &root, path.as_bytes(), 0o755);
        drop(made.unwrap());
    }),
    ("create", |world, n| {
        drop(world.open(format!("/mine/file {n}").as_bytes()));
    }),
    ("create and unlink", |world, _| {
        drop(world.open(b"/mine/passing"));
        let root = world.fs.root();
        world
            .fs
            .unlink_at(&Caller::root(), &root, b"/mine/passing")
            .unwrap();
    }),
    ("rename", |world, n| {
        let names = [&b"/mine/target"[..], b"/mine/moved"];
        let from = (n % 2) as usize;
        world.rename(names[from], names[1 - from]);
    }),
    ("rename between directories", |world, n| {
        let names = [&b"/mine/gone"[..], b"/aside/moved"];
        let from = (n % 2) as usize;
        world.rename(names[from], names[1 - from]);
    }),
    ("link", |world, n| {
        let (who, root) = (Caller::root(), world.fs.root());
        let node = world.fs.resolve(&who, &root, b"/mine/linked", true);
        let to = format!("/mine/link {n}");
        world
            .fs
            .link_at(&who, &node.unwrap(), &root, to.as_bytes())
            .unwrap();
    }),
    ("chmod", |world, n| {
        let (who, root) = (Caller::root(), world.fs.root());
        let node = world.fs.resolve(&who, &root, b"/mine/part", true).unwrap();
        let set = SetAttr {
            perm: Some(0o600 | (n as u16 % 8)),
            ..SetAttr::default()
        };
        world.fs.setattr(&who, &node, &set, None).unwrap();
    }),
    ("setxattr", |world, n| {
        let (who, root) = (Caller::root(), world.fs.root());
        let node = world.fs.resolve(&who, &root, b"/mine/part too", true);
        let value = n.to_le_bytes();
        let how = XattrSet::Any;
        world
            .fs
            .setxattr(&who, &node.unwrap(), b"user.n", &value, how)
            .unwrap();
    }),
    ("append", |world, n| {
        world.write(b"/mine/appended", n * 100, &bytes(100));
    }),
];

/// Do all of them wait? Their counts stand still, so long as nothing would that waits for nothing
/// else.
fn all_wait(counts: &[AtomicU64]) -> bool {
    let read = || counts.iter().map(|count| count.load(Ordering::Relaxed));
    let before: Vec<u64> = read().collect();
    thread::sleep(Duration::from_millis(500));
    read().eq(before)
}

/// Looks at everything in the same directory, and changes nothing.
fn look(world: &World) -> usize {
    let (who, root) = (Caller::root(), world.fs.root());
    let dir = world
        .fs
        .open_at(&who, &root, b"/mine", OpenFlags::DIRECTORY, 0)
        .unwrap();
    let mut names = 0;
    let mut count = |_: DirEntry<'_>| {
        names += 1;
        true
    };
    world.fs.read_dir(&dir, 0, &mut count).unwrap();
    for name in ["part", "part too", "appended", "linked", "more"] {
        let path = format!("/mine/{name}");
        world
            .fs
            .stat_at(&who, &root, path.as_bytes(), true)
            .unwrap();
    }
    let absent = world.fs.stat_at(&who, &root, b"/mine/nowhere", true);
    assert!(absent.is_err());
    let reads = |path: &[u8], range: std::ops::Range<u64>| {
        let file = world.fs.open_at(&who, &root, path, OpenFlags::empty(), 0);
        let mut found = vec![0; (range.end - range.start) as usize];
        let read = world.fs.read(&file.unwrap(), range.start, &mut found);
        assert_eq!(read, Ok(found.len()));
        assert_eq!(found, bytes(range.end)[range.start as usize..]);
    };
    reads(b"/mine/more", 0..PART);
    reads(b"/mine/part", 0..PART);
    reads(b"/mine/large", 3 * PAGE..LARGE);
    reads(b"/mine/appended", 0..100);
    names
}

#[test]
fn operations_that_wait_for_room_keep_nobody_from_their_directory_and_files() {
    let world = Arc::new(World::cold());
    names_are_known(&world);
    drop(world.open(b"/mine/linked"));
    world.write(b"/mine/appended", 0, &bytes(100));
    world.device.hold_flushes();
    let over = Arc::new(AtomicBool::new(false));
    let folding = {
        let (world, over) = (Arc::clone(&world), Arc::clone(&over));
        thread::spawn(move || {
            let folded = world.store.checkpoint();
            over.store(true, Ordering::Release);
            folded.unwrap();
        })
    };
    assert!(world.device.is_held(|| false, PATIENCE));
    let counts: Arc<[AtomicU64]> = KINDS.iter().map(|_| AtomicU64::new(0)).collect();
    let waiting: Vec<_> = (0..KINDS.len())
        .map(|kind| {
            let (world, counts, over) = (world.clone(), counts.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Acquire) {
                    let n = counts[kind].load(Ordering::Relaxed);
                    KINDS[kind].1(&world, n);
                    counts[kind].store(n + 1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let until = Instant::now() + 4 * PATIENCE;
    while !all_wait(&counts) && Instant::now() < until {}
    let none_ended = waiting.iter().all(|waiting| !waiting.is_finished());
    let (done, looked) = mpsc::channel();
    let looking = {
        let world = Arc::clone(&world);
        thread::spawn(move || done.send(look(&world)).unwrap())
    };
    let names = looked.recv_timeout(PATIENCE);
    let still_held = !over.load(Ordering::Acquire);
    world.device.release();
    looking.join().unwrap();
    for (waiting, (name, _)) in waiting.into_iter().zip(KINDS) {
        waiting.join().unwrap_or_else(|_| panic!("{name} failed"));
    }
    folding.join().unwrap();
    assert!(none_ended && still_held && Instant::now() < until + PATIENCE);
    let names = names.expect("something is locked by what waits for room");
    assert!(names > 5, "{names}");
    Arc::into_inner(world).expect("nobody else has it").close();
}
