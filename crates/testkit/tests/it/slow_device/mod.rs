//! A slow device call delays only the operations that need its result.
//!
//! Each operation that reads the device is held in one of its reads after the other. Meanwhile
//! every operation that needs something else must complete. No times are measured: an operation
//! that waits for the held read fails the test.

mod checkpoints;
mod others;
mod pages;
mod room;
mod world;

use holdfast_core::Store;
use holdfast_types::{Caller, Fallocate, Ino, OpenFlags};
use others::{PATIENCE, beside, without_commits};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use world::{LARGE, NAMES, PAGE, PART, World, byte, bytes};

fn names_are_known(world: &World) {
    let _ = world.open(b"/mine/more");
}

#[test]
fn others_go_on_beside_a_slow_read_of_data() {
    beside("read", names_are_known, |world| {
        world.assert_reads(b"/mine/large", PAGE..LARGE);
    });
}

#[test]
fn others_go_on_beside_a_slow_read_of_a_file_that_was_changed() {
    let changed = |world: &World| {
        world.write(
            b"/mine/large",
            10 * PAGE,
            &bytes(11 * PAGE)[10 * PAGE as usize..],
        );
        let at = 20 * PAGE;
        let sector: Vec<u8> = (at..at + 512).map(byte).collect();
        world.write(b"/mine/large", at, &sector);
        world.fs.drop_caches().unwrap();
        names_are_known(world);
    };
    beside("read", changed, |world| {
        world.assert_reads(b"/mine/large", PAGE..LARGE);
    });
}

#[test]
fn others_go_on_beside_slow_reads_of_names_and_inodes() {
    beside(
        "names",
        |_| {},
        |world| {
            let attr = world
                .fs
                .stat_at(&Caller::root(), &world.fs.root(), b"/mine/more", true)
                .unwrap();
            assert_eq!(attr.size, PART);
        },
    );
    beside(
        "listing",
        |_| {},
        |world| {
            let (who, root) = (Caller::root(), world.fs.root());
            let flags = OpenFlags::DIRECTORY;
            let dir = world.fs.open_at(&who, &root, b"/mine", flags, 0).unwrap();
            let mut names = 0;
            world
                .fs
                .read_dir_plus(&dir, 0, &mut |_, _| {
                    names += 1;
                    true
                })
                .unwrap();
            assert!(names >= NAMES as usize);
        },
    );
}

#[test]
fn others_go_on_beside_slow_searches_of_the_store() {
    beside(
        "lookup",
        |_| {},
        |world| {
            let root = world.fs.root().ino();
            let mut found = Vec::new();
            world.store.look_up(root, &[b"mine"], &mut found).unwrap();
            let dir = found[0].as_ref().unwrap().0.ino;
            let names = [&b"more"[..], b"nowhere"];
            world.store.look_up(dir, &names, &mut found).unwrap();
            assert!(found[1].is_some() && found[2].is_none());
        },
    );
    beside(
        "walk",
        |_| {},
        |world| {
            let mut found = Vec::new();
            world
                .store
                .walk()
                .unwrap()
                .walk(Ino(0), 10_000, &mut found)
                .unwrap();
            // Beside a checkpoint it may begin anew, but brings nothing twice.
            assert!(found.is_sorted_by(|one, other| one.ino < other.ino));
            assert!(found.len() > 2 * NAMES as usize);
        },
    );
}

#[test]
fn others_go_on_beside_a_slow_write_of_a_part_of_a_page() {
    beside("write of a part", names_are_known, |world| {
        world.write(b"/mine/part", PAGE + 100, &[7; 100]);
    });
    beside("append", names_are_known, |world| {
        world.write(b"/mine/part", PART + 3 * PAGE, &[7; 100]);
    });
    beside("write past memory", names_are_known, |world| {
        world.write(b"/mine/large", 512, &[7; 512]);
        world.write(b"/mine/large", 700, &[8; 50]);
    });
}

#[test]
fn others_go_on_beside_slow_zeroing() {
    beside("growth", names_are_known, |world| {
        world.resize(b"/mine/part", PART + 5 * PAGE);
    });
    beside("truncation", names_are_known, |world| {
        world.resize(b"/mine/part", PAGE + 10);
        world.resize(b"/mine/part", 2 * PAGE + 10);
    });
    beside("punch", names_are_known, |world| {
        let file = world.open(b"/mine/large");
        let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        world
            .fs
            .fallocate(&Caller::root(), &file, mode, 100, 9 * PAGE)
            .unwrap();
    });
}

#[test]
fn others_go_on_beside_a_slow_copy() {
    beside("copy", names_are_known, |world| {
        let (from, to) = (world.open(b"/mine/large"), world.open(b"/mine/target"));
        let (who, len) = (Caller::root(), 5 * PAGE);
        let copied = world.fs.copy_file_range(&who, &from, 100, &to, 700, len);
        assert_eq!(copied, Ok(len));
    });
}

#[test]
fn others_go_on_beside_a_slow_removal() {
    beside("unlink", names_are_known, |world| {
        world
            .fs
            .unlink_at(&Caller::root(), &world.fs.root(), b"/mine/gone")
            .unwrap();
    });
    beside("removal of an open file", names_are_known, |world| {
        let file = world.open(b"/mine/gone");
        world
            .fs
            .unlink_at(&Caller::root(), &world.fs.root(), b"/mine/gone")
            .unwrap();
        drop(file);
    });
}

#[test]
fn others_go_on_beside_slow_renames() {
    beside("rename of a file", names_are_known, |world| {
        world.rename(b"/mine/more", b"/deep/down/below/target");
    });
    beside("rename of a directory", names_are_known, |world| {
        world.rename(b"/deep/down", b"/mine/down");
    });
}

#[test]
fn others_go_on_beside_many_who_wait_for_a_slow_flush() {
    const SYNCERS: usize = 64;
    let world = Arc::new(World::cold());
    let stat = |world: &World, path: &[u8]| {
        let (who, root) = (Caller::root(), world.fs.root());
        world.fs.stat_at(&who, &root, path, true).unwrap()
    };
    stat(&world, b"/others/part");
    world.device.hold_flushes();
    let asked = Arc::new(AtomicUsize::new(0));
    let syncing: Vec<_> = (0..SYNCERS)
        .map(|number| {
            let (world, asked) = (Arc::clone(&world), Arc::clone(&asked));
            thread::spawn(move || {
                let path = format!("/mine/new {number}");
                world.write(path.as_bytes(), 0, &bytes(PAGE));
                let file = world.open(path.as_bytes());
                asked.fetch_add(1, Ordering::Relaxed);
                world.fs.fsync(&file, false).unwrap();
            })
        })
        .collect();
    let all_asked = || asked.load(Ordering::Relaxed) == SYNCERS;
    assert!(world.device.is_held(|| false, PATIENCE));
    let until = Instant::now() + PATIENCE;
    while !all_asked() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    let (done, progress) = mpsc::channel();
    let working = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            for (_, other) in without_commits() {
                other(&world);
                stat(&world, b"/others/part");
                let _ = done.send(());
            }
        })
    };
    let others = without_commits();
    let waits = others
        .iter()
        .find(|_| progress.recv_timeout(PATIENCE).is_err());
    let none_was_done = syncing.iter().all(|syncing| !syncing.is_finished());
    let all_asked = all_asked();
    world.device.release();
    working.join().unwrap();
    for syncing in syncing {
        syncing.join().unwrap();
    }
    assert!(all_asked, "a write waits for a flush");
    assert!(none_was_done, "an fsync returned before its flush");
    if let Some((name, _)) = waits {
        panic!("{name} waits for a flush");
    }
    Arc::into_inner(world).expect("nobody else has it").close();
}
