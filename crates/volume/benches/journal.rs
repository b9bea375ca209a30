//! What the journal costs: appends, commits and a replay of creations with names of 24 bytes.
//!
//! `cargo bench -p holdfast-volume --bench journal [-- DIRECTORY]`. Appends and the replay are over
//! memory; commits are measured on a file in `DIRECTORY` as well. Medians of five runs.

use holdfast_core::store::{Change, InodeRecord, Lsn, StoredSpace};
use holdfast_device::{BlockDevice, Caching, FileDevice, FileOptions, MemoryDevice};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use holdfast_volume::journal::{Journal, Position, Region};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Creations of one run.
const FILES: u64 = 400_000;
const RUNS: usize = 5;
const REGION: Region = Region {
    start: 0,
    blocks: 1 << 14,
    volume: 7,
};

fn main() {
    let directory = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("| what | value |\n|---|---|");
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(REGION.blocks * 4096));
    for (layout, dirs) in [("in order", 1), ("into 1,000 directories in turn", 1000)] {
        appends(&memory, layout, dirs);
    }
    for threads in [1, 2, 4] {
        let journal = open(&memory);
        let run = || {
            let each = &|thread| {
                let before = on_cpu();
                append(&journal, thread, 1);
                on_cpu() - before
            };
            let time: u64 = thread::scope(|scope| {
                let threads: Vec<_> = (0..threads)
                    .map(|thread| scope.spawn(move || each(thread)))
                    .collect();
                let times = threads.into_iter().map(|thread| thread.join());
                times.map(|time| time.expect("no panic")).sum()
            });
            journal.trim(journal.cut());
            time as f64 / (threads * FILES) as f64
        };
        let time = median((0..RUNS).map(|_| run()));
        println!("| that and append, {threads} threads, ns of processor | {time:.0} |");
    }
    replay(&memory);
    commits(&memory, "memory");
    if let Some(directory) = directory {
        let path = Path::new(&directory).join("journal-bench.img");
        for caching in [Caching::Buffered, Caching::Direct] {
            let options = FileOptions {
                caching,
                ..FileOptions::default()
            };
            let device = FileDevice::create(&path, REGION.blocks * 4096, options);
            let device = device.expect("a file in that directory");
            commits(&(Arc::new(device) as _), &format!("file, {caching:?}"));
            std::fs::remove_file(&path).expect("our own file");
        }
    }
}

/// Nanoseconds that this thread has run: on a busy machine the clock says little.
fn on_cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split(' ').next().expect("three numbers");
    first.parse().expect("a number")
}

fn open(device: &Arc<dyn BlockDevice>) -> Journal {
    Journal::format(Arc::clone(device), REGION).expect("a region of that device");
    let replay = Journal::open(Arc::clone(device), REGION, Position::default());
    let replay = replay.expect("a region of that device");
    replay.finish().expect("an empty journal")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn inode(ino: u64, kind: FileType, time: i64, parent: u64) -> InodeRecord {
    InodeRecord {
        ino: Ino(ino),
        kind,
        perm: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 1000,
        rdev: 0,
        size: 0,
        atime: Time(time),
        mtime: Time(time),
        ctime: Time(time),
        btime: Time(time),
        parent: Ino(parent),
        xattrs: false,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

/// What the core says of the `index`th file, of which each directory gets every `dirs`th.
fn creation(index: u64, base: u64, dirs: u64, name: &[u8]) -> [Change<'_>; 3] {
    let time = 1_700_000_000_000_000_000 + (index / 4000 * 4_000_000).cast_signed();
    let dir = base + 2 + index % dirs;
    let nth = index / dirs;
    let mut directory = inode(dir, FileType::Directory, time, 1);
    directory.size = 4096 + 32 * nth;
    directory.btime = Time(5);
    directory.atime = Time(5);
    // Numbers in chunks for each directory.
    let ino = Ino(base + 5000 + (index % dirs) * 10_000 + nth);
    [
        Change::Create {
            inode: inode(ino.0, FileType::Regular, time, dir),
            target: None,
        },
        Change::Enter {
            dir: Ino(dir),
            name,
            cookie: base + 30 + nth,
            ino,
            kind: FileType::Regular,
        },
        Change::Attributes { inode: directory },
    ]
}

fn append(journal: &Journal, thread: u64, dirs: u64) -> Lsn {
    let mut name = *b"file-000000000000000000x";
    let mut lsn = Lsn(0);
    for index in 0..FILES {
        name[5..13].copy_from_slice(&index.to_le_bytes());
        let batch = creation(index, thread << 32, dirs, &name);
        lsn = journal.append(1, &batch).expect("room");
    }
    lsn
}

fn appends(device: &Arc<dyn BlockDevice>, layout: &str, dirs: u64) {
    let journal = open(device);
    let made = |index: u64| black_box(creation(index, 0, dirs, b"file-000000000000000000x"));
    let start = Instant::now();
    for index in 0..FILES {
        black_box(made(index));
    }
    let making = start.elapsed().as_nanos() as f64 / FILES as f64;
    let mut bytes = 0;
    let mut run = || {
        let before = journal.cut();
        let start = Instant::now();
        append(&journal, 0, dirs);
        let time = start.elapsed().as_nanos() as f64 / FILES as f64;
        journal.commit(None, &()).expect("memory does not fail");
        let after = journal.cut();
        bytes = (after.block - before.block) * 4096;
        journal.trim(after);
        time
    };
    let time = median((0..RUNS).map(|_| run()));
    println!("| making the batch, {layout}, ns | {making:.0} |");
    println!("| that and append, {layout}, ns | {time:.0} |");
    println!(
        "| bytes per creation, {layout} | {:.1} |",
        bytes as f64 / FILES as f64
    );
}

fn replay(device: &Arc<dyn BlockDevice>) {
    let journal = open(device);
    append(&journal, 0, 1);
    journal.commit(None, &()).expect("memory does not fail");
    let run = || {
        let start = Instant::now();
        let replay = Journal::open(Arc::clone(device), REGION, Position::default());
        let mut replay = replay.expect("a region of that device");
        let mut records = 0_u64;
        while let Some(mut batch) = replay.next_batch().expect("an undamaged journal") {
            while let Some(record) = batch.next().expect("an undamaged journal") {
                black_box(&record);
                records += 1;
            }
        }
        assert_eq!(records, 3 * FILES);
        start.elapsed().as_nanos() as f64 / FILES as f64
    };
    let time = median((0..RUNS).map(|_| run()));
    println!("| replay, ns per creation (three records) | {time:.0} |");
}

fn commits(device: &Arc<dyn BlockDevice>, what: &str) {
    for (files, size) in [(1, "one creation"), (2300, "64 KiB")] {
        let journal = open(device);
        let mut index = 0;
        let mut run = || {
            for _ in 0..files {
                let batch = creation(index, 0, 1, b"file-000000000000000000x");
                journal.append(1, &batch).expect("room");
                index += 1;
            }
            let start = Instant::now();
            journal.commit(None, &()).expect("a device that works");
            let time = start.elapsed().as_nanos() as f64 / 1000.0;
            journal.trim(journal.cut());
            time
        };
        let time = median((0..200).map(|_| run()));
        println!("| commit of {size}, {what}, µs | {time:.0} |");
    }
}
