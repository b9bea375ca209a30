//! What the store costs under the core: creations, changed attributes, removals, in batches as the
//! core makes them; reading names and inodes that are cold.
//!
//! `cargo bench -p holdfast-volume --bench store [-- FILES [RUNS]]`. Over memory; medians, nanoseconds of
//! the thread for each file, the commit at the end of those that write counted.

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change, InodeRecord, NameRun, StoredSpace, WalkInodes};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ROOT: Ino = Ino(1);
const DIR: Ino = Ino(64);
/// The number of the first file, a multiple of a run's length.
const FIRST: u64 = 128;
/// How many names the core asks for at once.
const NAMES_AT_ONCE: usize = 4096;
/// How many inodes.
const INODES_AT_ONCE: usize = 128;

const PHASES: [&str; 8] = [
    "create",
    "unlink",
    "read names, cold",
    "load inodes, cold",
    "change attributes, cold",
    "commit of that",
    "unlink, cold",
    "commit of that",
];

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let files = numbers.first().copied().unwrap_or(100_000);
    let runs = numbers.get(1).copied().unwrap_or(9);
    let mut times = vec![Vec::new(); PHASES.len()];
    for _ in 0..runs {
        for (times, time) in times.iter_mut().zip(run(files)) {
            times.push(time);
        }
    }
    println!("| what | ns a file |\n|---|--:|");
    for (phase, mut times) in PHASES.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("| {phase} | {:.1} |", times[times.len() / 2]);
    }
}

fn run(files: u64) -> [f64; PHASES.len()] {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 30));
    format(&device, &FormatOptions::default()).expect("a device that is large enough");
    let store = open(&device);
    let dir = [
        Change::Create {
            inode: inode(DIR, FileType::Directory, 0, ROOT),
            target: None,
        },
        Change::Enter {
            dir: ROOT,
            name: b"dir",
            cookie: 3,
            ino: DIR,
            kind: FileType::Directory,
        },
    ];
    store.change(&dir).expect("room");
    let mut times = [0.0; PHASES.len()];
    // In between, so that what is created last is there.
    times[0] = each(files, |nth| create(&store, nth));
    times[1] = each(files, |nth| unlink(&store, nth));
    each(files, |nth| create(&store, nth));
    store.commit(None).expect("memory does not fail");
    store.close().expect("memory does not fail");
    drop(store);

    let store = open(&device);
    let mut names = NameRun::default();
    let (mut last, mut count) = (0, 0);
    times[2] = part(files, || {
        loop {
            names.clear();
            let read = store.read_names(DIR, last, NAMES_AT_ONCE, &mut names);
            read.expect("names");
            let Some(cookie) = names.last_cookie() else {
                break;
            };
            last = cookie;
            count += names.len() as u64;
        }
    });
    assert_eq!(count, files);
    let mut inodes = Vec::new();
    let mut after = Ino(FIRST - 1);
    chmod(&store, 0);
    times[3] = part(files, || {
        for _ in 0..files.div_ceil(INODES_AT_ONCE as u64) {
            inodes.clear();
            let read = WalkInodes::walk(&store, after, INODES_AT_ONCE, &mut inodes);
            read.expect("inodes");
            after = black_box(&inodes).last().map_or(after, |last| last.ino);
        }
    });
    assert_eq!(after, Ino(FIRST + files - 1));
    let commit = || part(files, || store.commit(None).expect("memory does not fail"));
    times[4] = each(files, |nth| chmod(&store, nth));
    times[5] = commit();
    times[6] = each(files, |nth| unlink(&store, nth));
    times[7] = commit();
    times
}

fn open(device: &Arc<dyn BlockDevice>) -> VolumeStore {
    VolumeStore::open(Arc::clone(device), &OpenOptions::default()).expect("a volume")
}

/// Nanoseconds for each of so many.
fn part(files: u64, what: impl FnOnce()) -> f64 {
    let start = Instant::now();
    what();
    start.elapsed().as_nanos() as f64 / files as f64
}

fn each(files: u64, mut what: impl FnMut(u64)) -> f64 {
    part(files, || (0..files).for_each(&mut what))
}

fn inode(ino: Ino, kind: FileType, time: i64, parent: Ino) -> InodeRecord {
    InodeRecord {
        ino,
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
        parent,
        xattrs: false,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

/// Any 24 bytes that no other has.
fn named(nth: u64) -> [u8; 24] {
    let mut name = *b"file-000000000000000000x";
    name[5..13].copy_from_slice(&nth.to_be_bytes());
    name
}

/// The time advances every few thousand files, as the kernel's coarse clock does.
fn time(nth: u64) -> i64 {
    1_700_000_000_000_000_000 + (nth / 4000 * 4_000_000).cast_signed()
}

fn dir_of(nth: u64, time: i64) -> InodeRecord {
    let mut dir = inode(DIR, FileType::Directory, time, ROOT);
    dir.size = 4096 + 32 * nth;
    dir
}

fn create(store: &VolumeStore, nth: u64) {
    let (name, time, ino) = (named(nth), time(nth), Ino(FIRST + nth));
    let batch = [
        Change::Create {
            inode: inode(ino, FileType::Regular, time, DIR),
            target: None,
        },
        Change::Enter {
            dir: DIR,
            name: &name,
            cookie: 3 + nth,
            ino,
            kind: FileType::Regular,
        },
        Change::Attributes {
            inode: dir_of(nth, time),
        },
    ];
    store.change(&batch).expect("room");
}

fn chmod(store: &VolumeStore, nth: u64) {
    let mut inode = inode(Ino(FIRST + nth), FileType::Regular, time(nth), DIR);
    inode.perm = 0o600;
    inode.ctime = Time(time(nth) + 1);
    store.change(&[Change::Attributes { inode }]).expect("room");
}

fn unlink(store: &VolumeStore, nth: u64) {
    let (name, time, ino) = (named(nth), time(nth) + 2, Ino(FIRST + nth));
    let mut last = inode(ino, FileType::Regular, time, DIR);
    last.nlink = 0;
    let batch = [
        Change::Attributes { inode: last },
        Change::Leave {
            dir: DIR,
            name: &name,
            cookie: 3 + nth,
        },
        Change::Attributes {
            inode: dir_of(nth, time),
        },
        Change::Free { ino },
    ];
    store.change(&batch).expect("room");
}
