//! Pages of one file on their way into memory: what needs other pages does not wait for them.

use super::others::PATIENCE;
use super::world::{LARGE, PAGE, World, byte, bytes};
use holdfast_core::OpenFile;
use holdfast_types::{Caller, Fallocate};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

const FILE: &[u8] = b"/mine/large";
/// Far from the pages that are in memory, so that nothing is read ahead.
const COLD: u64 = 200;

/// A file that has its map and its first pages in memory, and no others.
fn warm() -> Arc<World> {
    let world = World::cold();
    world.assert_reads(FILE, 0..PAGE);
    Arc::new(world)
}

/// What stands in a page of the file.
fn page_of(number: u64) -> Vec<u8> {
    (number * PAGE..(number + 1) * PAGE).map(byte).collect()
}

/// Reads a page in a thread of its own.
fn reading(world: &Arc<World>, page: u64) -> JoinHandle<(OpenFile, Vec<u8>)> {
    let world = Arc::clone(world);
    thread::spawn(move || {
        let file = world.open(FILE);
        let mut found = vec![0; PAGE as usize];
        let read = world.fs.read(&file, page * PAGE, &mut found).unwrap();
        found.truncate(read);
        (file, found)
    })
}

/// Does something that may not wait for what is held.
fn at_once(world: &Arc<World>, name: &str, act: impl FnOnce(&World) + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let acting = {
        let world = Arc::clone(world);
        thread::spawn(move || {
            act(&world);
            let _ = done.send(());
        })
    };
    if is_done.recv_timeout(PATIENCE).is_err() {
        world.device.release();
        acting.join().unwrap();
        panic!("{name} waits for a read of another page");
    }
    acting.join().unwrap();
}

fn close(world: Arc<World>) {
    Arc::into_inner(world).expect("nobody else has it").close();
}

fn fallocate(world: &World, mode: Fallocate, pages: std::ops::Range<u64>) {
    let (who, file) = (Caller::root(), world.open(FILE));
    let (offset, len) = (pages.start * PAGE, (pages.end - pages.start) * PAGE);
    world.fs.fallocate(&who, &file, mode, offset, len).unwrap();
}

#[test]
fn cold_reads_of_one_file_are_under_way_at_once() {
    const READERS: u64 = 16;
    let world = warm();
    world.device.hold_reads();
    let pages = (0..READERS).map(|number| COLD + 5 * number);
    let readers: Vec<_> = pages.clone().map(|page| reading(&world, page)).collect();
    let all = world.device.holds(READERS as usize, PATIENCE);
    world.device.release();
    for (page, reader) in pages.zip(readers) {
        assert!(reader.join().unwrap().1 == page_of(page), "other bytes");
    }
    assert!(all, "a cold read waits for another");
    close(world);
}

#[test]
fn what_needs_other_pages_goes_on_beside_a_cold_read() {
    let world = warm();
    world.device.hold_reads();
    let reader = reading(&world, COLD);
    assert!(world.device.holds(1, PATIENCE));
    at_once(&world, "a read of a page in memory", |world| {
        world.assert_reads(FILE, PAGE..2 * PAGE);
    });
    at_once(&world, "a write to a page in memory", |world| {
        world.write(FILE, 100, &[byte(100)]);
    });
    at_once(&world, "a write of a whole page", |world| {
        world.write(FILE, (COLD + 100) * PAGE, &page_of(COLD + 100));
    });
    at_once(&world, "a write of sectors of another page", |world| {
        let at = (COLD + 110) * PAGE + 512;
        let sector: Vec<u8> = (at..at + 512).map(byte).collect();
        world.write(FILE, at, &sector);
    });
    at_once(&world, "an append", |world| {
        let more: Vec<u8> = (LARGE..LARGE + 2 * PAGE).map(byte).collect();
        world.write(FILE, LARGE, &more);
    });
    at_once(&world, "truncation to the old size", |world| {
        world.resize(FILE, LARGE);
    });
    at_once(&world, "punching another page", |world| {
        let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        fallocate(world, mode, COLD + 120..COLD + 121);
        world.write(FILE, (COLD + 120) * PAGE, &page_of(COLD + 120));
    });
    at_once(&world, "fsync", |world| {
        world.fs.fsync(&world.open(FILE), false).unwrap();
    });
    assert!(!reader.is_finished());
    world.device.release();
    assert!(reader.join().unwrap().1 == page_of(COLD), "other bytes");
    world.fs.drop_caches().unwrap();
    world.assert_reads(FILE, 0..LARGE);
    close(world);
}

/// Changes a page while it is read: the change does not wait, and the old bytes are never seen
/// again.
fn changed_in_flight(name: &str, expected: Vec<u8>, change: fn(&World)) {
    let world = warm();
    let reader = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let file = world.open(FILE);
            world.device.hold_read_of(thread::current().id(), 0);
            let mut found = vec![0; PAGE as usize];
            let read = world.fs.read(&file, COLD * PAGE, &mut found).unwrap();
            found.truncate(read);
            (file, found)
        })
    };
    assert!(world.device.holds(1, PATIENCE));
    at_once(&world, name, change);
    world.device.release();
    let (file, found) = reader.join().unwrap();
    // It began before the change, and may have seen either; what is in memory is what came of the
    // change.
    assert!(
        found == expected || found == page_of(COLD),
        "{name}: other bytes"
    );
    for _ in 0..2 {
        let mut found = vec![0xaa; PAGE as usize];
        let read = world.fs.read(&file, COLD * PAGE, &mut found).unwrap();
        found.truncate(read);
        assert!(found == expected, "{name}: the bytes before came back");
        world.fs.sync().unwrap();
        world.fs.drop_caches().unwrap();
    }
    drop(file);
    close(world);
}

#[test]
fn what_changes_while_it_is_read_stays_changed() {
    let page = PAGE as usize;
    changed_in_flight("a write of the page", vec![7; page], |world| {
        world.write(FILE, COLD * PAGE, &[7; PAGE as usize]);
    });
    changed_in_flight("truncation", Vec::new(), |world| {
        world.resize(FILE, 100 * PAGE);
    });
    changed_in_flight("truncation to nothing", Vec::new(), |world| {
        world.resize(FILE, 0);
    });
    changed_in_flight("truncation and growth", vec![0; page], |world| {
        world.resize(FILE, COLD * PAGE);
        world.resize(FILE, LARGE);
    });
    changed_in_flight("a hole", vec![0; page], |world| {
        let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        fallocate(world, mode, COLD - 10..COLD + 10);
    });
    changed_in_flight("zeros", vec![0; page], |world| {
        fallocate(world, Fallocate::ZERO_RANGE, COLD..COLD + 1);
    });
    changed_in_flight("collapse", page_of(COLD + 3), |world| {
        fallocate(world, Fallocate::COLLAPSE_RANGE, 100..103);
    });
    changed_in_flight("insertion", page_of(COLD - 3), |world| {
        fallocate(world, Fallocate::INSERT_RANGE, 100..103);
    });
    changed_in_flight("a hole whose blocks others get", vec![0; page], |world| {
        let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        fallocate(world, mode, COLD..COLD + 1);
        world.fs.sync().unwrap();
        let (who, file) = (Caller::root(), world.open(b"/others/all"));
        let mut at = 0;
        while world.fs.write(&who, &file, at, &[0xee; 16 << 10]).is_ok() {
            at += 16 << 10;
        }
        let _ = world.fs.sync();
    });
}

#[test]
fn a_change_of_a_part_of_a_page_in_flight_waits_for_it() {
    let world = warm();
    world.device.hold_reads();
    let reader = reading(&world, COLD);
    assert!(world.device.holds(1, PATIENCE));
    let writer = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            world.write(FILE, COLD * PAGE + 512, &[7; 512]);
            world.write(FILE, COLD * PAGE + 2000, &[8; 100]);
        })
    };
    world.device.release();
    writer.join().unwrap();
    drop(reader.join().unwrap());
    let mut expected = page_of(COLD);
    expected[512..1024].fill(7);
    expected[2000..2100].fill(8);
    for _ in 0..2 {
        let mut found = bytes(PAGE);
        let file = world.open(FILE);
        assert_eq!(
            world.fs.read(&file, COLD * PAGE, &mut found),
            Ok(found.len())
        );
        assert!(found == expected);
        world.fs.sync().unwrap();
        world.fs.drop_caches().unwrap();
    }
    close(world);
}

#[test]
fn a_small_file_that_is_cut_off_while_it_is_mapped_stays_empty() {
    const SMALL: &[u8] = b"/mine/more";
    let world = Arc::new(World::cold());
    let file = world.open(SMALL);
    world.store.drop_nodes();
    world.device.hold_reads();
    let reader = {
        let (world, file) = (Arc::clone(&world), file);
        thread::spawn(move || {
            let read = world.fs.read(&file, 0, &mut [0; 100]).unwrap();
            assert!(read == 0 || read == 100);
            file
        })
    };
    assert!(world.device.holds(1, PATIENCE));
    let cut = {
        let world = Arc::clone(&world);
        // The store has to read where its blocks are.
        thread::spawn(move || world.resize(SMALL, 0))
    };
    world.device.release();
    cut.join().unwrap();
    let file = reader.join().unwrap();
    assert_eq!(world.fs.read(&file, 0, &mut [0; 100]), Ok(0));
    world.resize(SMALL, PAGE);
    let mut found = vec![1; PAGE as usize];
    assert_eq!(world.fs.read(&file, 0, &mut found), Ok(found.len()));
    assert!(found.iter().all(|byte| *byte == 0), "bytes came back");
    drop(file);
    close(world);
}

#[test]
fn a_large_read_past_memory_holds_nobody_up() {
    let world = warm();
    // More than is brought into memory for one read.
    let read = 2 * LARGE;
    world.device.hold_reads();
    let reader = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let file = world.open(FILE);
            let mut found = vec![0; read as usize];
            let len = world.fs.read(&file, 0, &mut found).unwrap();
            found.truncate(len);
            (file, found)
        })
    };
    assert!(world.device.holds(1, PATIENCE));
    at_once(&world, "a write to a page in memory", |world| {
        world.write(FILE, 100, &[byte(100)]);
    });
    world.device.release();
    let (file, found) = reader.join().unwrap();
    assert!(found == bytes(LARGE), "other bytes");
    drop(file);
    close(world);
}
