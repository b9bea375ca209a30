//! Space promised by fallocate(2) on full volumes: a write within it is never refused, whatever its
//! size and whatever happened to the volume since.

mod world;

use std::sync::Barrier;
use std::thread;

use holdfast_testkit::{effort, seed};
use holdfast_types::{Caller, Fallocate};
use world::{BLOCK, MIB, World};

const ROOM: u64 = 3 * MIB;

/// A full volume of 64 MiB with a file that has 3 MiB preallocated beyond its end.
fn promised(keep_size: bool) -> World {
    let mut world = World::make(1, 64 * MIB);
    let mode = match keep_size {
        true => Fallocate::KEEP_SIZE,
        false => Fallocate::empty(),
    };
    world.allocate("file", mode, 0, ROOM).unwrap();
    world.fill();
    world
}

#[test]
fn promised_room_is_written_in_calls_of_any_size() {
    for keep_size in [true, false] {
        for size in [100, 4096, 5000, 256 << 10, ROOM] {
            let mut world = promised(keep_size);
            // Few of the small ones: until the file is mapped, and some more.
            for at in (0..ROOM).step_by(size as usize).take(64) {
                world.write("file", at, size.min(ROOM - at));
            }
            world.again();
            world.compare();
        }
    }
}

#[test]
fn single_blocks_all_over_promised_room_are_written() {
    let mut world = promised(true);
    // Each splits an unwritten extent, without a checkpoint.
    for step in [2, 3, 7] {
        for page in (step / 2..ROOM / BLOCK).step_by(step as usize) {
            world.write("file", page * BLOCK, BLOCK);
        }
        world.fs.sync().unwrap();
        world.checkpoint();
    }
    world.again();
    world.compare();
}

#[test]
fn zeros_that_outgrow_their_inode_have_a_block() {
    const FILES: u64 = 200;
    let mut world = World::make(4, 8 * MIB);
    let names: Vec<String> = (0..FILES).map(|number| format!("zeros-{number}")).collect();
    for name in &names {
        world.write_zeros(name, 200);
        world.resize(name, 3000);
    }
    world.fill();
    for name in &names {
        world.write(name, 50, 100);
    }
    world.fs.sync().unwrap();
    world.again();
    world.compare();
}

#[test]
fn promised_room_is_written_by_many_threads_at_once() {
    const THREADS: u64 = 32;
    const BLOCKS: u64 = 8;
    let mut world = World::make(5, 4 * MIB);
    let names: Vec<String> = (0..THREADS)
        .map(|number| format!("file-{number}"))
        .collect();
    for name in &names {
        let room = BLOCKS * BLOCK;
        world.allocate(name, Fallocate::KEEP_SIZE, 0, room).unwrap();
    }
    world.fill();
    let (world, begin) = (&world, &Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(move || {
                let (who, file) = (Caller::root(), world.open(name).unwrap());
                begin.wait();
                for round in 0..4 * BLOCKS {
                    let at = round * 3 % BLOCKS * BLOCK;
                    let written = world.fs.write(&who, &file, at, &[round as u8; 4096]);
                    assert_eq!(written, Ok(4096), "{name}, round {round}");
                }
            });
        }
    });
    world.fs.sync().unwrap();
}

#[test]
fn whatever_is_done_promises_are_kept() {
    let first = seed(1);
    for seed in first..first + effort().of(6, 60) {
        println!("seed {seed}");
        let mut world = World::make(seed, [2, 4, 8, 24][(seed % 4) as usize] * MIB);
        for _ in 0..400 {
            world.operation();
        }
        world.again();
        world.compare();
        world.assert_sound();
        world.empty();
    }
}
