//! The journal under every interleaving of a few threads that append and commit.
//!
//! Its module is compiled here once more, with loom's atomics and locks (`primitive`) in place of
//! the real ones. There is no test harness, so the module's own tests stay out. Loom runs all
//! orders with up to `SWITCHES` involuntary switches. An argument selects models by a part of their
//! names. Some also run over locks or latches that are broken on purpose, and must notice.
#![expect(
    dead_code,
    unused_imports,
    reason = "the module's tests are compiled and, without the harness, never run"
)]

#[macro_use]
extern crate holdfast_types as _;

#[path = "../../src/checksum.rs"]
pub mod checksum;
mod failing;
#[path = "../../src/journal/mod.rs"]
pub mod journal;
mod primitive;
#[path = "../../src/varint.rs"]
pub mod varint;

use holdfast_core::store::{Change, Lsn};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::Ino;
use journal::{Journal, Mode, Position, Region};
use loom::sync::Mutex;
use loom::thread;
use primitive::{Broken, break_on_purpose};
use std::sync::Arc;

const SWITCHES: usize = 2;

const REGION: Region = Region {
    start: 0,
    blocks: 128,
    volume: 1,
};

const MODELS: [(&str, fn()); 8] = [
    (
        "a_cut_takes_all_lanes_at_one_moment",
        a_cut_takes_all_lanes_at_one_moment,
    ),
    (
        "a_commit_is_a_consistent_prefix",
        a_commit_is_a_consistent_prefix,
    ),
    (
        "two_who_commit_both_get_what_they_asked_for",
        two_who_commit,
    ),
    (
        "a_trim_beside_an_append_loses_nothing",
        a_trim_beside_an_append,
    ),
    (
        "nobody_commits_behind_a_commit_that_failed",
        failing::beside_an_error,
    ),
    (
        "what_is_written_beside_a_commit_counts_for_the_cache_and_no_more",
        a_write_beside_a_commit,
    ),
    (
        "an_append_ends_the_rest_of_a_thread_that_saw_nothing_of_it",
        an_append_beside_a_rest,
    ),
    (
        "nobody_commits_behind_a_write_that_failed",
        failing::beside_an_error_of_a_write,
    ),
];

/// The same over a deliberate fault.
const BROKEN: [(&str, fn(), Broken); 4] = [
    (
        "an error, and its latch is lost",
        failing::beside_an_error,
        Broken::Latch,
    ),
    (
        "an error, latched behind the turn",
        failing::beside_an_error,
        Broken::LateLatch,
    ),
    (
        "an error of a write, and its latch is lost",
        failing::beside_an_error_of_a_write,
        Broken::Latch,
    ),
    (
        "an error, and no waiter is woken",
        failing::beside_an_error,
        Broken::Wakes,
    ),
];

fn main() {
    let chosen = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_chosen = |name: &str| chosen.as_ref().is_none_or(|part| name.contains(part));
    for (name, model) in MODELS {
        if is_chosen(name) {
            check(model);
            println!("model {name} ... ok");
        }
    }
    // Loom's panics are expected here.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for (name, model, broken) in BROKEN {
        if is_chosen(name) {
            break_on_purpose(broken);
            let noticed = std::panic::catch_unwind(|| check(model)).is_err();
            break_on_purpose(Broken::Nothing);
            if !noticed {
                eprintln!("model of {name} ... not noticed");
                std::process::exit(1);
            }
            println!("model of {name} ... noticed");
        }
    }
    std::panic::set_hook(hook);
}

fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(SWITCHES);
    builder.check(model);
}

/// A journal, and an object that threads change in turn.
struct World {
    device: Arc<MemoryDevice>,
    journal: Journal,
    object: Mutex<u64>,
}

impl World {
    fn new() -> Arc<Self> {
        Self::over(MemoryDevice::new(REGION.blocks * 4096))
    }

    /// Over a device that says which cache holds unflushed writes.
    fn cached() -> Arc<Self> {
        Self::over(MemoryDevice::new(REGION.blocks * 4096).with_cache_identity(Some(1)))
    }

    fn over(device: MemoryDevice) -> Arc<Self> {
        let device = Arc::new(device);
        let replay = Journal::open(device.clone(), REGION, Position::default());
        let journal = replay.expect("a region").finish().expect("zeros");
        Arc::new(Self {
            device,
            journal,
            object: Mutex::new(0),
        })
    }

    /// Changes the object under its lock, as the core would; returns the change's number too.
    fn change(&self) -> (u64, Lsn) {
        let mut object = self.object.lock().expect("not poisoned");
        *object += 1;
        let batch = [Change::Truncate {
            ino: Ino(1),
            size: *object,
        }];
        let lsn = self.journal.append(1, &batch).expect("room");
        (*object, lsn)
    }

    /// The changes that a crash at this moment leaves: a prefix of all.
    fn survivors(&self, position: Position) -> Vec<u64> {
        self.survivors_with(position, None)
    }

    /// The same for the cache that holds unflushed writes.
    fn survivors_with(&self, position: Position, cache: Option<u64>) -> Vec<u64> {
        let image = MemoryDevice::from_image("crashed", self.device.image());
        let image = Arc::new(image.with_cache_identity(cache));
        let mut replay =
            Journal::open(image as Arc<dyn BlockDevice>, REGION, position).expect("a region");
        let mut seen = Vec::new();
        while let Some(mut batch) = replay.next_batch().expect("an undamaged journal") {
            while let Some(record) = batch.next().expect("an undamaged journal") {
                let journal::Record::Change(Change::Truncate { size, .. }) = record else {
                    panic!("nobody wrote {record:?}");
                };
                seen.push(size);
            }
        }
        seen
    }
}

/// The committing thread has no lane: the others may append between two lanes.
fn a_cut_takes_all_lanes_at_one_moment() {
    let world = World::new();
    let others = [(); 2].map(|()| {
        let world = Arc::clone(&world);
        thread::spawn(move || world.change())
    });
    world.journal.commit(None).expect("it works");
    let seen = world.survivors(Position::default());
    assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    for other in others {
        other.join().expect("no panic");
    }
    world.journal.commit(None).expect("it works");
    assert_eq!(world.survivors(Position::default()), [1, 2]);
}

fn a_commit_is_a_consistent_prefix() {
    let world = World::new();
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            world.change();
            world.change();
        })
    };
    let (number, lsn) = world.change();
    world.journal.commit(Some(lsn)).expect("it works");
    assert!(world.journal.durable() >= lsn);
    let seen = world.survivors(Position::default());
    assert!(seen.len() as u64 >= number);
    assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    other.join().expect("no panic");
    world.journal.commit(None).expect("it works");
    assert_eq!(world.survivors(Position::default()), [1, 2, 3]);
}

fn two_who_commit() {
    let world = World::new();
    let run = |world: &World| {
        let (number, lsn) = world.change();
        world.journal.commit(Some(lsn)).expect("it works");
        assert!(world.journal.durable() >= lsn);
        number
    };
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || run(&world))
    };
    let number = run(&world);
    assert!(world.survivors(Position::default()).contains(&number));
    let number = other.join().expect("no panic");
    assert!(world.survivors(Position::default()).contains(&number));
    assert_eq!(world.survivors(Position::default()), [1, 2]);
}

fn a_trim_beside_an_append() {
    let world = World::new();
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.change())
    };
    world.change();
    let position = world.journal.cut();
    world.journal.trim(position);
    let (number, lsn) = other.join().expect("no panic");
    world.journal.commit(None).expect("it works");
    let folded = lsn <= position.lsn;
    let seen = world.survivors(position);
    assert_eq!(seen.contains(&number), !folded, "{seen:?}");
    assert_eq!(seen.is_empty(), folded);
}

/// A thread that finds nothing to do is told of the next change.
fn an_append_beside_a_rest() {
    let world = World::cached();
    let roused = Arc::new(Mutex::new(false));
    let told = Arc::clone(&roused);
    world
        .journal
        .when_roused(move || *told.lock().expect("not poisoned") = true);
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.change())
    };
    let rests = world.journal.rests(false);
    other.join().expect("no panic");
    let roused = *roused.lock().expect("not poisoned");
    assert!(!rests || roused, "it sleeps on");
}

/// The commit flushes twice with the ring unlocked.
fn a_write_beside_a_commit() {
    let world = World::cached();
    let other = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let (number, _) = world.change();
            let mut group = world.journal.begin_group(Mode::Written).expect("it works");
            group.write().expect("it works");
            assert_eq!(group.flush(), Ok(false), "only written");
            drop(group);
            let seen = world.survivors_with(Position::default(), Some(1));
            assert!(seen.contains(&number), "{seen:?}");
        })
    };
    let (number, lsn) = world.change();
    if let Some(_turn) = world.journal.turn(lsn) {
        let mut group = world.journal.begin_group(Mode::Flushed).expect("it works");
        // Bytes that must be flushed before the commit that refers to them.
        group.needs_flush();
        group.write().expect("it works");
        group.flush().expect("it works");
        group.mark().expect("it works");
    }
    let seen = world.survivors(Position::default());
    assert!(seen.contains(&number), "{seen:?}");
    assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    other.join().expect("no panic");
    let seen = world.survivors_with(Position::default(), Some(1));
    assert_eq!(seen, [1, 2]);
}
