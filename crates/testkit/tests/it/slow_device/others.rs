//! What others do beside an operation that is held, and a look whether they can.

use super::world::{LARGE, PAGE, PART, World, bytes};
use holdfast_core::Store;
use holdfast_types::{Caller, Ino, SetAttr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// So long nothing takes that does not wait for the held read, however loaded the machine is.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Calls of an operation that are held, one after the other, at most.
const CALLS_MAX: usize = 16;

/// Which calls of an operation are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Reads,
    All,
}

/// What others do meanwhile, each with its name.
pub(super) type Other = (&'static str, fn(&World));

pub(super) const OTHERS: &[Other] = &[
    ("create", |world| drop(world.open(b"/others/new"))),
    ("mkdir", |world| {
        let root = world.fs.root();
        world
            .fs
            .mkdir_at(&Caller::root(), &root, b"/others/dir", 0o755)
            .unwrap();
    }),
    ("write of a new page", |world| {
        world.write(b"/others/new", 0, &bytes(PAGE));
    }),
    ("chmod", |world| {
        let node = world
            .fs
            .resolve(&Caller::root(), &world.fs.root(), b"/others/part too", true)
            .unwrap();
        let set = SetAttr {
            perm: Some(0o600),
            ..SetAttr::default()
        };
        world
            .fs
            .setattr(&Caller::root(), &node, &set, None)
            .unwrap();
    }),
    ("fsync", |world| {
        world.fs.fsync(&world.open(b"/others/new"), false).unwrap();
    }),
    ("create behind a commit", |world| {
        drop(world.open(b"/others/newer"));
    }),
    ("write of a part of a cold page", |world| {
        world.write(b"/others/part", PAGE + 10, &[7; 20]);
    }),
    ("growth over a part of a cold page", |world| {
        world.resize(b"/others/part too", PART + 5 * PAGE);
    }),
    ("cold read", |world| {
        world.assert_reads(b"/others/large", 0..LARGE);
    }),
    ("unlink", |world| {
        world
            .fs
            .unlink_at(&Caller::root(), &world.fs.root(), b"/others/gone")
            .unwrap();
    }),
    ("rename between directories", |world| {
        world.rename(b"/others/more", b"/aside/most");
    }),
    ("sync", |world| world.fs.sync().unwrap()),
    ("loads of all that changed", |world| {
        let mut inos: Vec<Ino> = Vec::new();
        let mut records = Vec::new();
        world
            .store
            .walk()
            .unwrap()
            .walk(Ino(0), 10_000, &mut records)
            .unwrap();
        inos.extend(records.iter().map(|record| record.ino));
        let mut found = Vec::new();
        world.store.load_inodes(&inos, &mut found).unwrap();
        assert_eq!(found, records);
    }),
];

const CHECKPOINT: Other = ("checkpoint", |world| world.store.checkpoint().unwrap());

/// Stops `operation` in each of the reads that it makes, and has the others do their work; then it
/// has to come to its end.
pub(super) fn others_go_on_beside(
    name: &str,
    others: &[&[Other]],
    prepare: fn(&World),
    operation: fn(&World),
) {
    let calls = Calls::Reads;
    let mut passed = 0;
    while passed < CALLS_MAX && is_held_at((calls, passed), name, others, prepare, operation) {
        passed += 1;
    }
    assert!(passed > 0, "{name}: it called nothing");
}

/// Calls of the device that an operation makes.
pub(super) fn calls_of(prepare: fn(&World), operation: fn(&World)) -> usize {
    let world = World::cold();
    prepare(&world);
    world.store.drop_nodes();
    let me = thread::current().id();
    world.device.hold_call_of(me, usize::MAX);
    operation(&world);
    let calls = world.device.passed();
    world.device.release();
    world.close();
    calls
}

/// Stops `operation` in each of these calls of the device, and has the others do their work.
pub(super) fn beside_all_calls_of(
    calls: Range<usize>,
    name: &str,
    others: &[&[Other]],
    prepare: fn(&World),
    operation: fn(&World),
) {
    for passed in calls {
        let held = is_held_at((Calls::All, passed), name, others, prepare, operation);
        assert!(held, "{name}: it makes no more than {passed} calls");
    }
}

/// What does not ask for anything to be durable.
pub(super) fn without_commits() -> Vec<Other> {
    let commits = ["fsync", "sync"];
    let others = OTHERS.iter().filter(|(name, _)| !commits.contains(name));
    others.copied().collect()
}

fn is_held_at(
    (calls, passed): (Calls, usize),
    name: &str,
    others: &[&[Other]],
    prepare: fn(&World),
    operation: fn(&World),
) -> bool {
    let world = Arc::new(World::cold());
    prepare(&world);
    world.store.drop_nodes();
    let over = Arc::new(AtomicBool::new(false));
    let operating = {
        let (world, over) = (Arc::clone(&world), Arc::clone(&over));
        thread::spawn(move || {
            let me = thread::current().id();
            match calls {
                Calls::Reads => world.device.hold_read_of(me, passed),
                Calls::All => world.device.hold_call_of(me, passed),
            }
            operation(&world);
            world.device.release();
            over.store(true, Ordering::Release);
        })
    };
    let held = world
        .device
        .is_held(|| over.load(Ordering::Acquire), PATIENCE);
    if held {
        let (done, progress) = mpsc::channel();
        let all: Vec<Other> = others.concat();
        let working = {
            let (world, all) = (Arc::clone(&world), all.clone());
            thread::spawn(move || {
                for (_, other) in all {
                    other(&world);
                    let _ = done.send(());
                }
            })
        };
        let waits = all
            .iter()
            .find(|_| progress.recv_timeout(PATIENCE).is_err());
        assert!(waits.is_some() || !over.load(Ordering::Acquire));
        world.device.release();
        working.join().unwrap();
        if let Some((other, _)) = waits {
            operating.join().unwrap();
            panic!("{name}, held in call {passed} of {calls:?}: {other} waits for it");
        }
    }
    operating.join().unwrap();
    let world = Arc::into_inner(world).expect("nobody else has it");
    world.close();
    held
}

pub(super) fn beside(name: &str, prepare: fn(&World), operation: fn(&World)) {
    others_go_on_beside(name, &[OTHERS, &[CHECKPOINT], AFTER], prepare, operation);
}

/// Once more, over trees that are new.
pub(super) const AFTER: &[Other] = &[
    ("create behind a checkpoint", |world| {
        drop(world.open(b"/others/newest"));
    }),
    ("write behind a checkpoint", |world| {
        world.write(b"/others/large", 10, &[9; 100]);
    }),
    ("fsync behind a checkpoint", |world| {
        world.fs.fsync(&world.open(b"/others/new"), false).unwrap();
    }),
];
