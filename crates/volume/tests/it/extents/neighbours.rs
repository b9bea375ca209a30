//! Blocks that come in random order, far apart, lie beside their neighbours whenever those came.

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change, Grant, Intent};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_types::Ino;
use holdfast_volume::{CheckOptions, VolumeStore, check};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{BLOCK, BLOCK_LEN, MIB, OPTIONS, create, inode, open, pieces, volume, write};

const FILE: Ino = Ino(9);
const ROWS: u64 = 600;
/// So far apart that it is not worth setting a piece of the file aside.
const STEP: u64 = 4096;
const SIZE: u64 = ROWS * STEP * BLOCK_LEN;

fn put(store: &VolumeStore, block: u64, byte: u8) {
    write(store, FILE, SIZE, block * BLOCK_LEN, &[byte; BLOCK]);
}

#[test]
fn blocks_that_come_with_one_commit_lie_beside_those_of_another() {
    let (device, store) = volume(64 * MIB, None);
    create(&store, FILE);
    for row in 0..ROWS {
        put(&store, row * STEP + 1, 1);
    }
    store.commit(None).expect("committed");
    let rows = ROWS as usize;
    assert_eq!(pieces(&store, FILE), rows);
    // Behind some, before others, and on both sides; of the others many, so that these are few.
    for row in 0..ROWS {
        let beside = match row {
            0..6 => row * STEP + 2,
            6..9 => row * STEP,
            9 => row * STEP + 2,
            _ => row * STEP + 100,
        };
        put(&store, beside, 2);
    }
    put(&store, 9 * STEP, 2);
    store.commit(None).expect("committed");
    assert_eq!(pieces(&store, FILE), 2 * rows - 10);
    // Three in a row beside one, and what is there is written over as well.
    for row in 20..ROWS {
        put(&store, row * STEP + 101, 3);
    }
    (0..3).for_each(|row| put(&store, row * STEP, 4));
    put(&store, 5, 5);
    put(&store, 2, 5);
    let before = pieces(&store, FILE);
    store.checkpoint().expect("folded");
    assert!(pieces(&store, FILE) > before, "only a part is moved");
    let shown = |store: &VolumeStore, block: u64| {
        let mut page = [0; BLOCK];
        let read = store.read_data(FILE, block * BLOCK_LEN, &mut page);
        read.expect("read");
        assert!(page.iter().all(|byte| *byte == page[0]));
        page[0]
    };
    let assert_shown = |store: &VolumeStore| {
        for row in 0..ROWS {
            let row_of = |blocks: [u64; 5]| blocks.map(|block| shown(store, row * STEP + block));
            let expected = match row {
                0 => [4, 1, 5, 0, 0],
                1..3 => [4, 1, 2, 0, 0],
                3..6 => [0, 1, 2, 0, 0],
                6..9 => [2, 1, 0, 0, 0],
                9 => [2, 1, 2, 0, 0],
                10..20 => [0, 1, 0, 2, 0],
                _ => [0, 1, 0, 2, 3],
            };
            assert_eq!(row_of([0, 1, 2, 100, 101]), expected, "row {row}");
        }
    };
    assert_shown(&store);
    store.close().expect("closed");
    let store = open(&device);
    assert_shown(&store);
    drop(store);
    let below: Arc<dyn BlockDevice> = device.clone();
    assert_sound(&below);
}

fn assert_sound(device: &Arc<dyn BlockDevice>) {
    let report = check(device, &CheckOptions::default(), &|_, _, _| {});
    let findings = report.findings.iter().map(ToString::to_string);
    let of_names = |it: &String| it == "there is no root directory" || it.ends_with("has no name");
    let others = findings.filter(|it| !of_names(it));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_full_volume_moves_nothing_and_loses_nothing() {
    let (device, store) = volume(16 * MIB, None);
    create(&store, FILE);
    for row in 0..ROWS {
        put(&store, row * STEP, 1);
    }
    store.commit(None).expect("committed");
    // All that is free is promised to the writer.
    let one = Intent {
        pages: 1,
        ..Intent::default()
    };
    let blocks: Vec<u64> = [1, STEP + 1, 2 * STEP + 1]
        .into_iter()
        .chain((1..ROWS).map(|row| row * STEP + STEP / 2))
        .collect();
    let mut held = Grant::NONE;
    while let Ok(more) = store.reserve(&one) {
        held.pages += more.pages;
    }
    for block in blocks {
        let (offset, data) = (block * BLOCK_LEN, &[2; BLOCK][..]);
        let inode = inode(FILE, SIZE);
        let write = Change::Write {
            ino: FILE,
            offset,
            data,
        };
        let batch = [Change::Attributes { inode }, write];
        let mut part = Grant {
            pages: std::mem::take(&mut held.pages),
            // As if that had been kept, too: else a checkpoint makes room for it.
            records: 1000,
            ..Grant::NONE
        };
        store.apply(&mut part, &batch).expect("written");
    }
    let before = pieces(&store, FILE);
    let read = device.read.load(Ordering::Relaxed);
    store.commit(None).expect("committed");
    let looked_at = device.read.load(Ordering::Relaxed) - read;
    assert_eq!(looked_at, 3 * BLOCK_LEN);
    assert_eq!(pieces(&store, FILE), before + 3 + (ROWS as usize - 1));
}

/// What was written to each block of both files, as (round, byte), in order.
type Written = BTreeMap<(Ino, u64), Vec<(u64, u8)>>;

const OTHER: Ino = Ino(10);
const ROUNDS: u64 = 6;

/// Blocks beside others, and over them, and those of a file that uses what becomes free; each round ends with a commit.
fn write_in_rounds(store: &VolumeStore, device: &RecordingDevice) -> Written {
    let mut written = Written::new();
    for ino in [FILE, OTHER] {
        create(store, ino);
    }
    for round in 1..=ROUNDS {
        let mut put = |ino: Ino, block: u64, byte: u64| {
            let byte = byte as u8;
            let size = if ino == FILE { SIZE } else { 0 };
            write(store, ino, size, block * BLOCK_LEN, &[byte; BLOCK]);
            written.entry((ino, block)).or_default().push((round, byte));
        };
        for row in 0..ROWS / 4 {
            put(FILE, (row * 4 + round % 4) * STEP + 64 * round, round);
        }
        // On one side, on the other, and beside what was brought together before.
        for row in 0..4 {
            let at = row * 4 * STEP + 4 * STEP + 256;
            put(
                FILE,
                at + [3, 4, 2, 5, 6, 1][round as usize - 1],
                10 + round,
            );
        }
        put(FILE, 4 * STEP + 256 + 3, 20 + round);
        (0..20).for_each(|block| put(OTHER, round * 20 + block, 30 + round));
        if round == 4 {
            store.checkpoint().expect("folded");
        } else {
            store.commit(None).expect("committed");
        }
        device.mark(round);
    }
    written
}

#[test]
fn a_crash_finds_what_is_moved_at_one_place_or_the_other() {
    let (below, store) = volume(24 * MIB, None);
    drop(store);
    let device = Arc::new(RecordingDevice::new(below).expect("recording"));
    let recorded: Arc<dyn BlockDevice> = device.clone();
    let store = VolumeStore::open(recorded, &OPTIONS).expect("opened");
    let written = write_in_rounds(&store, &device);
    // A row of six came together one by one, each time with another commit; others as far as there may be moved as much.
    let extents = store.extents(FILE).expect("told");
    let six = extents.iter().filter(|it| it.extent.length == 6).count();
    assert!(six > 0, "{extents:?}");
    drop(store);
    let states = CrashStates::new(device.history(), 54);
    let systematic = states.systematic();
    let some = (0..systematic).step_by((systematic / 150).max(1) as usize);
    for number in some.chain(systematic..systematic + 250) {
        let state = states.state(number);
        let name = state.to_string();
        let reached = state.reached().next_back().unwrap_or(0);
        let crashed: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::from_image("crashed", state.image));
        assert_sound(&crashed);
        let store = VolumeStore::open(Arc::clone(&crashed), &OPTIONS).expect("opened");
        for ((ino, block), versions) in &written {
            let mut page = [0; BLOCK];
            let read = store.read_data(*ino, block * BLOCK_LEN, &mut page);
            read.expect("read");
            // What the last commit wrote that ended, or a later one; files in blocks are written in place.
            let durable = versions.iter().rfind(|(round, _)| *round <= reached);
            let durable = durable.map_or(0, |(_, byte)| *byte);
            let later = versions.iter().filter(|(round, _)| *round > reached);
            let later: Vec<u8> = later.map(|(_, byte)| *byte).collect();
            let allowed = |byte: &u8| *byte == durable || later.contains(byte);
            let all = page.iter().all(allowed);
            assert!(
                all,
                "{name}: block {block} of {ino} has {} for {durable}",
                page[0]
            );
        }
    }
}
