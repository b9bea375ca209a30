//! Bytes per record, heights, and how full nodes are.

use super::super::{
    Entries, Entry, EntryKey, Error, HashKey, Hashes, Inode, Inodes, NodeCache, NodeSize, Origin,
    Record, Tree,
};
use super::memory::{Change, Memory};
use super::model::Bench;
use super::sample::Sample;
use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const FILES: u64 = 100_000;
const FILES_A_DIR: u64 = 10_000;

pub(super) fn fresh(ino: u64, now: i64, dir: u64) -> Inode {
    let time = Time(now);
    let record = InodeRecord {
        ino: Ino(ino),
        kind: FileType::Regular,
        perm: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 1000,
        rdev: 0,
        size: 0,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        parent: Ino(dir),
        xattrs: false,
        space: StoredSpace::AS_SIZE,
        flags: FileFlags::empty(),
        project: 0,
    };
    Inode {
        record,
        next_cookie: 0,
        flags: 0,
    }
}

/// Merges `changes` into an empty tree; bytes of all its nodes per record.
fn bytes_per_record<'v, R: Record>(changes: impl Iterator<Item = (R::Key, R::Value<'v>)>) -> f64 {
    let memory = Memory::default();
    let cache = NodeCache::new(&memory, 1 << 20);
    let origin = Origin {
        generation: 1,
        subvolume: 1,
    };
    let changes = changes.map(|(key, value)| Ok::<_, Error>((key, Change::Put(value))));
    let tree = Tree::<R, _>::new(&cache, None);
    let merged = tree
        .merge_all(origin, NodeSize::STANDARD, &mut &memory, changes)
        .expect("sound");
    let records = merged.root.expect("not empty").records;
    assert_eq!(records, merged.added);
    (merged.written * 16384) as f64 / records as f64
}

#[test]
fn fresh_files_take_few_bytes() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let first = FILES_A_DIR + 1;
    let inodes = (0..FILES).scan(1_700_000_000_000_000_000, |now, file| {
        *now += rng.random_range(500..4000);
        let ino = first + file;
        Some((Ino(ino), fresh(ino, *now, file / FILES_A_DIR)))
    });
    let inode = bytes_per_record::<Inodes>(inodes);
    let names: Vec<[u8; 24]> = (0..FILES).map(|_| rng.random()).collect();
    let entries = names.iter().zip(0..).map(|(name, file)| {
        let key = EntryKey {
            dir: Ino(file / FILES_A_DIR),
            cookie: file % FILES_A_DIR + 3,
        };
        (
            key,
            Entry {
                ino: Ino(first + file),
                kind: FileType::Regular,
                name,
            },
        )
    });
    let entry = bytes_per_record::<Entries>(entries);
    let mut hashes: Vec<HashKey> = (0..FILES)
        .map(|file| HashKey {
            dir: Ino(file / FILES_A_DIR),
            hash: rng.random(),
            cookie: file % FILES_A_DIR + 3,
        })
        .collect();
    hashes.sort_unstable();
    let hash = bytes_per_record::<Hashes>(hashes.into_iter().map(|key| (key, ())));
    println!("bytes: inode {inode:.2}, entry {entry:.2}, hash {hash:.2}");
    assert!(inode <= 4.0, "{inode}");
    assert!(entry <= 27.0, "{entry}");
    assert!(hash <= 6.0, "{hash}");
}

#[test]
fn a_chmod_of_everything_keeps_inodes_short() {
    let inodes = (0..FILES).map(|file| {
        let mut inode = fresh(file + 1, 1_700_000_000_000_000_000 + file as i64 * 2000, 1);
        inode.record.ctime = Time(1_710_000_000_000_000_000 + file as i64 * 1500);
        (Ino(file + 1), inode)
    });
    let bytes = bytes_per_record::<Inodes>(inodes);
    println!("bytes after chmod: {bytes:.2}");
    assert!(bytes <= 7.0, "{bytes}");
}

/// No two neighbouring leaves could be one, but at the end of the tree.
fn leaves_stay_filled<R: Sample>(seed: u64) {
    const FILL: usize = 400;
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let memory = Memory::default();
    let mut bench = Bench::<R>::new(&memory, NodeSize::tiny(FILL, 8));
    let everything = (0..3000)
        .map(|_| R::key(&mut rng, 4000))
        .collect::<Vec<_>>();
    let put = everything
        .iter()
        .map(|&key| (key, Some(R::owned(&mut rng, key))))
        .collect();
    bench.merge(&put).expect("sound");
    for _ in 0..200 {
        let gone = (0..8)
            .map(|_| (everything[rng.random_range(0..3000)], None))
            .collect();
        bench.merge(&gone).expect("sound");
    }
    let used = |&(pointer, level): &(_, u8)| {
        let node = bench.cache.load::<R>(pointer, level).expect("sound");
        (level == 0).then(|| node.used())
    };
    // From the last leaf to the first.
    let leaves: Vec<usize> = bench.nodes().iter().filter_map(used).collect();
    let low = leaves
        .iter()
        .skip(1)
        .filter(|&&used| used < FILL / 3)
        .count();
    assert!(leaves.len() > 5, "{leaves:?}");
    assert_eq!(low, 0, "{leaves:?}");
}

#[test]
fn scattered_deletions_leave_no_small_leaves_behind() {
    for seed in 0..4 {
        leaves_stay_filled::<Inodes>(seed);
        leaves_stay_filled::<Hashes>(seed);
    }
}

/// A tree built by many changes at once or by few at a time has blocks of the right size. Few
/// changes leave most bytes of a leaf as they were.
#[test]
fn blocks_of_records_stay_as_they_are_between_scattered_changes() {
    const RECORDS: u64 = 40_000;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let key = |rng: &mut ChaCha8Rng, cookie| HashKey {
        dir: Ino(2),
        hash: rng.random(),
        cookie,
    };
    let memory = Memory::default();
    let mut bench = Bench::<Hashes>::new(&memory, NodeSize::STANDARD);
    let put = (0..RECORDS).map(|cookie| (key(&mut rng, cookie), Some(())));
    bench.merge(&put.collect()).expect("sound");
    let blocks = |bench: &Bench<'_, Hashes>| -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for (pointer, level) in bench.nodes() {
            let node = bench.cache.load::<Hashes>(pointer, level).expect("sound");
            if level == 0 {
                let run = |index| node.bytes()[node.run(index).expect("sound")].to_vec();
                found.extend((0..node.runs()).map(run));
            }
        }
        found
    };
    let full = usize::from(Hashes::PER_BLOCK);
    let mut before: HashSet<Vec<u8>> = blocks(&bench).into_iter().collect();
    for round in 0..100 {
        let put = (0..100).map(|n| (key(&mut rng, RECORDS + round * 100 + n), Some(())));
        bench.merge(&put.collect()).expect("sound");
        let now = blocks(&bench);
        let same = now.iter().filter(|&block| before.contains(block)).count();
        // Each change makes one block anew, or two with a neighbour.
        assert!(same + 300 >= now.len(), "{same} of {}", now.len());
        let records: usize = now.iter().map(|block| usize::from(block[0])).sum();
        assert_eq!(records as u64, RECORDS + (round + 1) * 100);
        let mean = records / now.len();
        assert!(
            (full / 2..=full * 3 / 2).contains(&mean),
            "{mean} records a block"
        );
        before = now.into_iter().collect();
    }
}
