//! What trees cost: merges, scans and lookups, in nanoseconds a record, over memory.
//!
//! `cargo bench -p holdfast-volume --bench tree [-- MILLIONS]`. *In order*: directory by
//! directory. *Interleaved*: every batch adds to each of 1,000 directories. Times are of one
//! thread; the medians of five batches.

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{Errno, FileFlags, FileType, Ino, Time};
use holdfast_volume::tree::{
    Birth, Change, Entries, Entry, EntryKey, Error, HashKey, Hashes, Inode, Inodes, NodeCache,
    NodeSource, NodeSpace, Pointer, Record, Root, Shape, Tree,
};
use std::collections::HashMap;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Instant;

/// Changes of one merge.
const BATCH: u64 = 1_000_000;
const DIRS: u64 = 1000;

/// Nodes in memory.
#[derive(Default)]
struct Memory {
    nodes: Mutex<HashMap<u64, Box<[u8]>>>,
    next: u64,
    written: u64,
}

struct Source<'m>(&'m Mutex<HashMap<u64, Box<[u8]>>>);

impl NodeSource for Source<'_> {
    fn volume(&self) -> u32 {
        0
    }

    fn blocks(&self) -> u64 {
        1 << 40
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let nodes = self.0.lock().map_err(|_| Errno::EIO)?;
        bytes.copy_from_slice(nodes.get(&block).ok_or(Errno::EIO)?);
        Ok(())
    }
}

struct Space<'m> {
    nodes: &'m Mutex<HashMap<u64, Box<[u8]>>>,
    next: &'m mut u64,
    written: &'m mut u64,
    freed: Vec<u64>,
}

impl NodeSpace for Space<'_> {
    fn allocate(&mut self, blocks: u16, _: u64) -> Result<u64, Error> {
        *self.next += u64::from(blocks);
        Ok(*self.next)
    }

    fn write(&mut self, node: Pointer, bytes: &[u8]) -> Result<(), Error> {
        *self.written += bytes.len() as u64;
        let mut nodes = self.nodes.lock().map_err(|_| Error::NoSpace)?;
        nodes.insert(node.block, bytes.into());
        Ok(())
    }

    fn free(&mut self, node: Pointer) {
        self.freed.push(node.block);
    }

    fn give_back(&mut self, block: u64, _: u16) {
        self.freed.push(block);
    }
}

impl Memory {
    /// Merges one batch; nanoseconds a change.
    fn merge<'v, R: Record>(
        &mut self,
        root: &mut Option<Root>,
        generation: u64,
        changes: impl Iterator<Item = (R::Key, Change<R::Value<'v>>)>,
    ) -> f64 {
        let (next, written) = (&mut self.next, &mut self.written);
        let mut space = Space {
            nodes: &self.nodes,
            next,
            written,
            freed: Vec::new(),
        };
        let cache = NodeCache::new(Source(&self.nodes), 1 << 20);
        let tree = Tree::<R, _>::new(&cache, *root);
        let birth = Birth {
            generation,
            subvolume: 1,
        };
        let begin = Instant::now();
        let changes = changes.map(Ok::<_, Error>);
        let merged = tree.merge_all(birth, Shape::STANDARD, &mut space, changes);
        let merged = merged.expect("memory does not fail");
        let nanos = begin.elapsed().as_nanos() as f64;
        *root = merged.root;
        let mut nodes = self.nodes.lock().expect("nobody panicked");
        for block in space.freed {
            nodes.remove(&block);
        }
        nanos / (merged.added + merged.replaced + merged.deleted + merged.missing) as f64
    }
}

fn inode(ino: u64, dir: u64) -> Inode {
    let time = Time(1_700_000_000_000_000_000 + ino as i64 * 1500);
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

/// A number that looks random.
fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ value >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// File `index` of a batch: its directory, and its place there.
fn file(index: u64, batch: u64, batches: u64, interleaved: bool) -> (u64, u64) {
    if interleaved {
        let a_dir = BATCH / DIRS;
        (index / a_dir, batch * a_dir + index % a_dir)
    } else {
        let a_dir = BATCH * batches / DIRS;
        let all = batch * BATCH + index;
        (all / a_dir, all % a_dir)
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Makes a tree in batches and reads it.
fn measure<'v, R: Record>(
    name: &str,
    batches: u64,
    changes: impl Fn(u64) -> Vec<(R::Key, Change<R::Value<'v>>)>,
) {
    let mut memory = Memory::default();
    let mut root = None;
    let mut keys = Vec::new();
    let merges = (0..batches).map(|batch| {
        let changes = changes(batch);
        keys.extend(changes.iter().map(|(key, _)| *key));
        memory.merge::<R>(&mut root, batch + 1, changes.into_iter())
    });
    let merge = median(merges.collect());
    let nodes = memory.nodes.lock().expect("nobody panicked").len();
    let image = (nodes * 16384) as f64 / keys.len() as f64;
    let written = memory.written as f64 / keys.len() as f64;
    let cache = NodeCache::new(Source(&memory.nodes), 1 << 30);
    let tree = Tree::<R, _>::new(&cache, root);
    let mut scans = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let mut cursor = tree.range(None).expect("sound");
        let mut count = 0;
        let each = cursor.each(|key, value| {
            black_box((&key, &value));
            count += 1;
            ControlFlow::Continue(())
        });
        each.expect("sound");
        assert_eq!(count, keys.len());
        scans.push(begin.elapsed().as_nanos() as f64 / count as f64);
    }
    let lookups = 200_000_u64;
    let begin = Instant::now();
    for index in 0..lookups {
        let key = keys[mixed(index) as usize % keys.len()];
        assert_eq!(tree.get(&key, |_| ()).expect("sound"), Some(()));
    }
    let get = begin.elapsed().as_nanos() as f64 / lookups as f64;
    keys.sort_unstable();
    let mut cursor = tree.range(None).expect("sound");
    let begin = Instant::now();
    for key in &keys {
        black_box(&cursor.find(key).expect("sound").expect("there"));
    }
    let find = begin.elapsed().as_nanos() as f64 / keys.len() as f64;
    let gone = |keys: Vec<R::Key>| keys.into_iter().map(|key| (key, Change::Delete));
    let some = keys
        .iter()
        .enumerate()
        .filter(|(at, _)| mixed(*at as u64 + 7).is_multiple_of(batches));
    let some: Vec<_> = some.map(|(_, key)| *key).collect();
    let before = memory.written;
    let count = some.len();
    let delete = memory.merge::<R>(&mut root, 100, gone(some));
    let deleted = (memory.written - before) as f64 / count as f64;
    println!(
        "{name:24} merge {merge:6.1} ns, written {written:6.1} B, image {image:5.2} B; scan first \
         {:5.1} ns, again {:5.1} ns; get {get:5.0} ns, find in order {find:5.1} ns; random delete {delete:6.1} ns, \
         written {deleted:6.1} B",
        scans[0],
        median(scans.clone()),
    );
}

fn main() {
    let batches = std::env::args()
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(5);
    println!("{batches} batches of {BATCH} records");
    let names: Vec<[u8; 24]> = (0..BATCH)
        .map(|index| std::array::from_fn(|at| mixed(index * 24 + at as u64) as u8))
        .collect();
    for (way, interleaved) in [("in order", false), ("interleaved", true)] {
        let ino = |dir: u64, place: u64| (dir << 24) + place + 1;
        let files = |batch| (0..BATCH).map(move |index| file(index, batch, batches, interleaved));
        measure::<Inodes>(&format!("inodes {way}"), batches, |batch| {
            let put = |(dir, place)| {
                (
                    Ino(ino(dir, place)),
                    Change::Put(inode(ino(dir, place), dir)),
                )
            };
            files(batch).map(put).collect()
        });
        measure::<Entries>(&format!("entries {way}"), batches, |batch| {
            let named = files(batch).zip(&names);
            named
                .map(|((dir, place), name)| {
                    let key = EntryKey {
                        dir: Ino(dir),
                        cookie: place + 3,
                    };
                    let (ino, kind) = (Ino(ino(dir, place)), FileType::Regular);
                    (key, Change::Put(Entry { ino, kind, name }))
                })
                .collect()
        });
        measure::<Hashes>(&format!("hashes {way}"), batches, |batch| {
            let put = |(dir, place)| {
                let hash = (mixed(ino(dir, place)) >> 32) as u32;
                (
                    HashKey {
                        dir: Ino(dir),
                        hash,
                        cookie: place + 3,
                    },
                    Change::Put(()),
                )
            };
            let mut all: Vec<_> = files(batch).map(put).collect();
            all.sort_unstable_by_key(|(key, _)| *key);
            all
        });
    }
}
