//! The journal under every interleaving of a few threads that append and commit.
//!
//! Its module is compiled here once more, with loom's atomics and locks in place of the real ones
//! (`journal_primitive`) and stamps from its counter; without the test harness, so that the
//! module's own tests stay out. Loom runs all orders with up to `SWITCHES` involuntary switches.
//! An argument chooses models by a part of their names.
#![expect(
    dead_code,
    unused_imports,
    reason = "the module's tests are compiled and, without the harness, never run"
)]

#[path = "../../src/checksum.rs"]
pub mod checksum;
#[path = "../../src/journal/mod.rs"]
pub mod journal;
mod journal_primitive;

use holdfast_core::store::{Change, Stamp};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::Ino;
use journal::{Journal, Position, Region};
use loom::sync::Mutex;
use loom::thread;
use std::sync::Arc;

const SWITCHES: usize = 2;

const REGION: Region = Region {
    start: 0,
    blocks: 128,
    volume: 1,
};

fn main() {
    let chosen = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let models: [(&str, fn()); 4] = [
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
    ];
    for (name, model) in models {
        if chosen.as_ref().is_none_or(|part| name.contains(part)) {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound.get_or_insert(SWITCHES);
            builder.check(model);
            println!("model {name} ... ok");
        }
    }
}

/// A journal, and an object that threads change in turn.
struct World {
    device: Arc<MemoryDevice>,
    journal: Journal,
    object: Mutex<u64>,
}

impl World {
    fn new() -> Arc<Self> {
        let device = Arc::new(MemoryDevice::new(REGION.blocks * 4096));
        let replay = Journal::open(device.clone(), REGION, Position::default());
        let journal = replay.expect("a region").finish().expect("zeros");
        Arc::new(Self {
            device,
            journal,
            object: Mutex::new(0),
        })
    }

    /// Changes the object under its lock, as the core would; answers the change's number too.
    fn change(&self) -> (u64, Stamp) {
        let mut object = self.object.lock().expect("not poisoned");
        *object += 1;
        let batch = [Change::Truncate {
            ino: Ino(1),
            size: *object,
        }];
        let stamp = self.journal.append(1, &batch).expect("room");
        (*object, stamp)
    }

    /// How many changes a crash at this moment leaves: they must be the first ones, in order.
    fn survivors(&self, position: Position) -> Vec<u64> {
        let image = Arc::new(MemoryDevice::from_image("crashed", self.device.image()));
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

/// The one who commits has no lane: between two lanes, both of the others may append.
fn a_cut_takes_all_lanes_at_one_moment() {
    let world = World::new();
    let others = [(); 2].map(|()| {
        let world = Arc::clone(&world);
        thread::spawn(move || world.change())
    });
    world.journal.commit(None, &()).expect("it works");
    let seen = world.survivors(Position::default());
    assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    for other in others {
        other.join().expect("no panic");
    }
    world.journal.commit(None, &()).expect("it works");
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
    let (number, stamp) = world.change();
    world.journal.commit(Some(stamp), &()).expect("it works");
    assert!(world.journal.durable() >= stamp);
    let seen = world.survivors(Position::default());
    assert!(seen.len() as u64 >= number);
    assert!(seen.iter().copied().eq(1..=seen.len() as u64), "{seen:?}");
    other.join().expect("no panic");
    world.journal.commit(None, &()).expect("it works");
    assert_eq!(world.survivors(Position::default()), [1, 2, 3]);
}

fn two_who_commit() {
    let world = World::new();
    let run = |world: &World| {
        let (number, stamp) = world.change();
        world.journal.commit(Some(stamp), &()).expect("it works");
        assert!(world.journal.durable() >= stamp);
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
    let (number, stamp) = other.join().expect("no panic");
    world.journal.commit(None, &()).expect("it works");
    let folded = stamp <= position.stamp;
    let seen = world.survivors(position);
    assert_eq!(seen.contains(&number), !folded, "{seen:?}");
    assert_eq!(seen.is_empty(), folded);
}
