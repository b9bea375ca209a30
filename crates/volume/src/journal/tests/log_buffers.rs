//! Many log buffers at once: a crash at any moment leaves a consistent prefix.

use super::{Recorder, formatted, region, reopened};
use crate::journal::{Journal, Position, Record};
use holdfast_core::store::Change;
use holdfast_device::MemoryDevice;
use holdfast_types::Ino;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const OBJECTS: usize = 5;
const BLOCKS: u64 = 8192;

/// Objects that count their changes under their locks.
struct World {
    device: Arc<Recorder>,
    journal: Journal,
    objects: [Mutex<u64>; OBJECTS],
    /// Changes of each object that a commit acknowledged.
    acknowledged: [AtomicU64; OBJECTS],
}

fn count(object: usize, number: u64) -> Change<'static> {
    Change::Truncate {
        ino: Ino(object as u64),
        size: number,
    }
}

impl World {
    /// Changes one object, or two in one batch; now and then commits.
    fn change(&self, seed: u64) {
        let first = (seed % OBJECTS as u64) as usize;
        let second = (seed / 7 % OBJECTS as u64) as usize;
        let (low, high) = (first.min(second), first.max(second));
        let mut one = self.objects[low].lock();
        *one += 1;
        let mut batch = vec![count(low, *one)];
        let lsn = if low == high {
            self.journal.append(1, &batch).expect("room")
        } else {
            let mut other = self.objects[high].lock();
            *other += 1;
            batch.push(count(high, *other));
            self.journal.append(1, &batch).expect("room")
        };
        drop(one);
        if seed.is_multiple_of(23) {
            self.journal.commit(Some(lsn)).expect("it works");
            for change in batch {
                if let Change::Truncate { ino, size } = change {
                    self.acknowledged[ino.0 as usize].fetch_max(size, Ordering::SeqCst);
                }
            }
        }
    }

    /// Compares each object with the state that a crash now would leave.
    fn check(&self) {
        let least = self
            .acknowledged
            .each_ref()
            .map(|count| count.load(Ordering::SeqCst));
        let image = self.device.inner.image();
        let crashed = Arc::new(MemoryDevice::from_image("crashed", image));
        let mut replay =
            Journal::open(crashed, region(BLOCKS), Position::default()).expect("a region");
        let mut seen = [0; OBJECTS];
        while let Some(mut batch) = replay.next_batch().expect("a legal state") {
            while let Some(record) = batch.next().expect("a legal state") {
                let Record::Change(Change::Truncate { ino, size }) = record else {
                    panic!("nobody wrote {record:?}");
                };
                let object = &mut seen[ino.0 as usize];
                assert_eq!(size, *object + 1, "of object {ino}");
                *object = size;
            }
        }
        for (seen, least) in seen.iter().zip(least) {
            assert!(*seen >= least, "{seen} of {least} acknowledged");
        }
    }
}

#[test]
fn batches_of_one_object_are_replayed_in_the_order_of_their_appends() {
    let device = formatted(BLOCKS);
    let (journal, _) = reopened(&device, BLOCKS, Position::default());
    let world = World {
        device,
        journal,
        objects: Default::default(),
        acknowledged: Default::default(),
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..6_u64)
            .map(|thread| {
                let world = &world;
                scope.spawn(move || {
                    let mut seed = thread + 1;
                    for _ in 0..2500 {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        world.change(seed >> 33);
                    }
                })
            })
            .collect();
        let (world, done) = (&world, &done);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                world.check();
            }
        });
        for thread in threads {
            thread.join().expect("no panic");
        }
        done.store(true, Ordering::Relaxed);
    });
    world.journal.commit(None).expect("it works");
    for (object, acknowledged) in world.objects.iter().zip(&world.acknowledged) {
        acknowledged.store(*object.lock(), Ordering::SeqCst);
    }
    world.check();
}
