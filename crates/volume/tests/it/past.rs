//! Sectors of pages that are not in memory are written past the page cache. Reads, now and after a
//! reopen, agree with a plain model of bytes.

use crate::stage::formatted;
use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_device::BlockDevice;
use holdfast_testkit::memory::within;
use holdfast_types::{Caller, Fallocate, OpenFlags, SetAttr};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;
const SIZE: usize = 2 * MIB;
const PAGE: usize = 4096;
const SECTOR: usize = 512;

fn device(size: u64) -> Arc<dyn BlockDevice> {
    formatted(size, &FormatOptions::default())
}

/// A file system over the volume, with this much memory and this commit interval.
fn mounted(
    device: &Arc<dyn BlockDevice>,
    memory: u64,
    commit_every: Option<Duration>,
) -> (FileSystem, Arc<VolumeStore>) {
    let open = OpenOptions {
        commit_every,
        ..OpenOptions::default()
    };
    let store = Arc::new(VolumeStore::open(Arc::clone(device), &open).unwrap());
    let fs = within(Arc::clone(&store) as _, Options::default(), Some(memory)).unwrap();
    (fs, store)
}

fn opened(fs: &FileSystem) -> OpenFile {
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    fs.create(&Caller::root(), &fs.root(), b"f", 0o644, flags)
        .unwrap()
}

/// A range of the file, mostly of whole sectors.
fn some(random: &mut ChaCha8Rng) -> Range<usize> {
    let start = random.random_range(0..SIZE - 2 * PAGE);
    match random.random_range(0..8) {
        0 => start..start + random.random_range(1..2 * PAGE),
        1 => {
            let start = start / PAGE * PAGE;
            start..start + PAGE
        }
        _ => {
            let start = start / SECTOR * SECTOR;
            start..start + SECTOR * random.random_range(1..=7)
        }
    }
}

fn check(fs: &FileSystem, file: &OpenFile, model: &[u8], range: Range<usize>, seed: u64) {
    let mut buf = vec![0; range.len()];
    let read = fs.read(file, range.start as u64, &mut buf).unwrap();
    let expected = &model[range.start.min(model.len())..range.end.min(model.len())];
    assert_eq!(read, expected.len(), "seed {seed}: {range:?}");
    let differs = buf.iter().zip(expected).position(|(is, was)| is != was);
    assert_eq!(differs, None, "seed {seed}: {range:?}");
}

/// Performs a step on the file and on its model.
fn step(fs: &FileSystem, file: &OpenFile, model: &mut Vec<u8>, random: &mut ChaCha8Rng, seed: u64) {
    let who = Caller::root();
    let mut range = some(random);
    match random.random_range(0..40) {
        0 => {
            fs.drop_caches().unwrap();
        }
        1 => fs.fsync(file, false).unwrap(),
        2 => {
            range.end = range.end.min(model.len()).max(range.start);
            if !range.is_empty() {
                let (at, len) = (range.start as u64, range.len() as u64);
                let punch = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                fs.fallocate(&who, file, punch, at, len).unwrap();
                model[range].fill(0);
            }
        }
        3 => {
            let size = SIZE - random.random_range(0..3 * PAGE);
            let change = SetAttr {
                size: Some(size as u64),
                ..SetAttr::default()
            };
            fs.setattr(&who, file.node(), &change, None).unwrap();
            model.resize(size, 0);
        }
        4..10 => check(fs, file, model, range, seed),
        _ => {
            let data: Vec<u8> = range.clone().map(|_| random.random()).collect();
            let written = fs.write(&who, file, range.start as u64, &data);
            assert_eq!(written, Ok(data.len()), "seed {seed}: {range:?}");
            if model.len() < range.end {
                model.resize(range.end, 0);
            }
            model[range].copy_from_slice(&data);
        }
    }
}

#[test]
fn sectors_written_past_memory_are_read_now_and_after_a_crash() {
    let often = Some(Duration::from_millis(3));
    let base: u64 = rand::random();
    for (seed, cache) in [(base, 0), (base ^ 1, 600 << 10), (base ^ 2, 64 << 20)] {
        println!("seed {seed}, {cache} bytes of memory");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let device = device(64 * MIB as u64);
        let (fs, store) = mounted(&device, cache, often);
        let file = opened(&fs);
        let mut model = vec![7; SIZE];
        fs.write(&Caller::root(), &file, 0, &model).unwrap();
        for _ in 0..4000 {
            step(&fs, &file, &mut model, &mut random, seed);
        }
        check(&fs, &file, &model, 0..SIZE, seed);
        fs.fsync(&file, false).unwrap();
        drop((file, fs, store));
        // Not closed: the journal has to be replayed.
        let (fs, _store) = mounted(&device, cache, often);
        let file = opened(&fs);
        check(&fs, &file, &model, 0..SIZE, seed);
    }
}

#[test]
fn a_file_larger_than_memory_that_is_filled_in_random_order_is_as_it_was_written() {
    const LEN: u64 = 48 << 20;
    const WRITE: u64 = 1024;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let (device, cache) = (device(2 * LEN), LEN / 2);
    let (fs, store) = mounted(&device, cache, None);
    let file = opened(&fs);
    let who = Caller::root();
    let content = |number: u64| (number ^ seed).to_le_bytes().repeat(WRITE as usize / 8);
    let mut order: Vec<u64> = (0..LEN / WRITE).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    for &number in &order {
        let written = fs.write(&who, &file, number * WRITE, &content(number));
        assert_eq!(written, Ok(WRITE as usize));
    }
    let check = |fs: &FileSystem, file: &OpenFile| {
        let mut buf = [0; WRITE as usize];
        for number in 0..LEN / WRITE {
            assert_eq!(fs.read(file, number * WRITE, &mut buf), Ok(buf.len()));
            assert!(buf[..] == content(number), "seed {seed}, write {number}");
        }
    };
    check(&fs, &file);
    fs.fsync(&file, false).unwrap();
    drop((file, fs, store));
    let (fs, _store) = mounted(&device, cache, None);
    check(&fs, &opened(&fs));
}
