//! Space that fallocate(2) promised, on volumes that are full otherwise: a write within it is never
//! refused, whatever its size, and whatever was done to the volume since.

mod world;

use std::sync::Barrier;
use std::thread;

use holdfast_testkit::{effort, seed};
use holdfast_types::{Caller, Errno, Fallocate};
use world::{BLOCK, MIB, World};

const ROOM: u64 = 3 * MIB;

/// A full volume of 64 MiB with a file of which 3 MiB are promised behind its end.
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
            // Few of the small ones: until the file outgrows its inode, and some more.
            for at in (0..ROOM).step_by(size as usize).take(64) {
                world.write("file", at, size.min(ROOM - at));
            }
            world.again();
            world.compare();
        }
    }
}

#[test]
fn promised_room_is_there_after_a_remount_and_after_a_kill() {
    for kill in [true, false] {
        let mut world = promised(true);
        world.fs.sync().unwrap();
        match kill {
            true => world.kill(),
            false => world.again(),
        }
        world.fill();
        world.write("file", 0, 100);
        for at in (0..ROOM).step_by(256 << 10) {
            world.write("file", at, 256 << 10);
        }
        world.again();
        world.compare();
    }
}

#[test]
fn single_blocks_all_over_promised_room_are_written() {
    let mut world = promised(true);
    // Each divides an unwritten extent, and nothing is folded together.
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
fn a_file_is_made_longer_within_promised_room() {
    let mut world = promised(true);
    world.write("file", 0, 100);
    world.resize("file", 5000);
    world.write("file", 10_000, 1);
    world.resize("file", ROOM);
    world.allocate("file", Fallocate::empty(), 0, ROOM).unwrap();
    world
        .allocate("file", Fallocate::ZERO_RANGE, BLOCK, 2 * BLOCK)
        .unwrap();
    world.write("file", ROOM - 5, 5);
    world.compare();
    // What is given back is promised no more.
    world.resize("file", 100);
    world.fill();
    assert_eq!(world.try_write("file", 0, ROOM), Err(Errno::ENOSPC));
}

#[test]
fn a_block_that_was_cut_is_filled_again() {
    let mut world = World::make(3, 8 * MIB);
    world.write("cut", 0, 10_000);
    world.fs.sync().unwrap();
    world.resize("cut", 1000);
    world.fill();
    // The first block has its place, though the inode could hold so few bytes.
    world.write("cut", 1000, 3000);
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
