//! What operations of all kinds reserve, against what their batches use.
//!
//! Each operation runs alone between two checkpoints, on trees of several levels with full and
//! partly full leaves. No other change shares a node with it. It used the pages that were allocated
//! up to the next commit, and the nodes that the next checkpoint allocated before it freed any.

pub(in crate::store) mod recorder;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::{FileSystem, Node, OpenFile, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::seed;
use holdfast_types::{
    Caller, Errno, Fallocate, FileType, OpenFlags, RenameFlags, SetAttr, XattrSet,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::block::BLOCK;
use crate::store::memtable::TreeCost;
use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
use recorder::Blocks;

/// Directories, and files in each.
const DIRECTORIES: usize = 40;
const FILES: usize = 250;
/// The first of these files have fragmented extents.
const MAPPED_ONE_IN: usize = 10;

/// Kinds of operations, as printed.
const KINDS: [&str; 27] = [
    "create",
    "mkdir",
    "symlink",
    "link",
    "rename",
    "rename far",
    "rename over",
    "exchange",
    "unlink",
    "unlink mapped",
    "rmdir",
    "chmod",
    "xattr short",
    "xattr long",
    "xattr gone",
    "write inline",
    "outgrow inline",
    "write page",
    "overwrite",
    "write sparse",
    "truncate",
    "extend",
    "punch",
    "zero",
    "allocate",
    "collapse",
    "copy",
];

/// Kinds that first create something, and checkpoint it.
const SETTLING: [&str; 4] = ["rmdir", "xattr gone", "write page", "collapse"];

/// Rounds of each kind.
const ROUNDS: usize = 40;

struct Volume {
    store: Arc<VolumeStore>,
    fs: FileSystem,
    who: Caller,
    random: ChaCha8Rng,
    made: u64,
}

/// What operations of one kind reserved and used.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    kept: Blocks,
    used: Blocks,
}

impl Volume {
    fn new(seed: u64) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 30));
        let options = FormatOptions {
            seed: Some(seed),
            ..FormatOptions::default()
        };
        format(&device, &options).unwrap();
        let options = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(device, &options).unwrap());
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        let mut volume = Self {
            store,
            fs,
            who: Caller::root(),
            random: ChaCha8Rng::seed_from_u64(seed),
            made: 0,
        };
        volume.plant();
        volume
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.random_range(0..bound)
    }

    fn bytes(&mut self, from: u64, to: u64) -> Vec<u8> {
        let len = self.random.random_range(from..=to);
        vec![self.random.random(); len as usize]
    }

    /// A new name of random length.
    fn name(&mut self) -> Vec<u8> {
        self.made += 1;
        let mut name = format!("{:06}-", self.made).into_bytes();
        let len = match self.below(8) {
            0 => 255,
            _ => self.random.random_range(8..60),
        };
        name.resize(len, b'n');
        name
    }

    fn dir(&mut self) -> Node {
        let name = format!("d{}", self.below(DIRECTORIES as u64));
        self.fs
            .lookup(&self.who, &self.fs.root(), name.as_bytes())
            .unwrap()
    }

    fn file(&self, dir: &Node, name: &[u8]) -> OpenFile {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        self.fs.open_at(&self.who, dir, name, flags, 0o644).unwrap()
    }

    fn write(&self, file: &OpenFile, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            done += self
                .fs
                .write(&self.who, file, at + done as u64, &bytes[done..])
                .unwrap();
        }
    }

    /// Many names, small files, attributes, and files with few and many extents.
    fn plant(&mut self) {
        let root = self.fs.root();
        for number in 0..DIRECTORIES {
            let name = format!("d{number}");
            let dir = self
                .fs
                .mkdir(&self.who, &root, name.as_bytes(), 0o755)
                .unwrap();
            for file in 0..FILES {
                let name = self.name();
                let open = self.file(&dir, &name);
                let bytes = self.bytes(1, 600);
                self.write(&open, 0, &bytes);
                if file % MAPPED_ONE_IN == 0 {
                    for page in 0..30 {
                        self.write(&open, page * 3 * BLOCK as u64, &[7; BLOCK]);
                    }
                }
            }
            self.fs.sync().unwrap();
        }
        let many = self.file(&root, b"many extents");
        for page in 0..6000 {
            self.write(&many, page * 2 * BLOCK as u64, &[7; BLOCK]);
        }
        self.finish();
    }

    /// Nothing is dirty, and nothing changed since the last checkpoint.
    fn finish(&self) {
        self.fs.sync().unwrap();
        self.store.checkpoint().unwrap();
    }

    /// A random file of those prepared or created.
    fn some(&mut self, mapped: bool) -> Option<(Node, Vec<u8>, Node)> {
        for _ in 0..200 {
            let dir = self.dir();
            let open = self.fs.open(&self.who, &dir, OpenFlags::NOATIME).unwrap();
            let (mut names, from) = (Vec::new(), self.below(200));
            let mut each = |entry: holdfast_core::DirEntry<'_>| {
                if entry.kind == FileType::Regular {
                    names.push(entry.name.to_vec());
                }
                (names.len() as u64) <= from
            };
            self.fs.read_dir(&open, 0, &mut each).unwrap();
            let Some(name) = names.pop() else { continue };
            let node = self.fs.lookup(&self.who, &dir, &name).unwrap();
            let attr = self.fs.getattr(&node);
            if (attr.size > 8 * BLOCK as u64) == mapped && attr.nlink == 1 {
                return Some((dir, name, node));
            }
        }
        None
    }

    /// Prepares an operation, and runs it when allowed: only that is measured.
    #[expect(clippy::too_many_lines, reason = "an arm for each kind")]
    fn make(&mut self, kind: &str, ready: &mut dyn FnMut(&Self)) {
        let dir = self.dir();
        let name = self.name();
        let (page, who, any) = (BLOCK as u64, self.who.clone(), XattrSet::Any);
        let mapped = matches!(
            kind,
            "unlink mapped"
                | "overwrite"
                | "write sparse"
                | "truncate"
                | "punch"
                | "zero"
                | "collapse"
                | "copy"
        );
        let Some((from, old, node)) = self.some(mapped) else {
            panic!("no file for {kind}")
        };
        let flags = OpenFlags::READ_WRITE;
        let open = self.fs.open(&who, &node, flags).unwrap();
        let size = self.fs.getattr(&node).size;
        let at = self.below(size.max(1)) / page * page;
        let (short, long, inline) = (
            self.bytes(10, 1500),
            self.bytes(3000, 60_000),
            self.bytes(1, 2000),
        );
        let target = vec![b't'; self.random.random_range(10..3000)];
        let fs = self.fs.clone();
        let allocate = |mode, at, len| fs.fallocate(&who, &open, mode, at, len).unwrap();
        let keep = Fallocate::KEEP_SIZE;
        match kind {
            "create" => {
                ready(self);
                self.fs
                    .mknod(&who, &dir, &name, FileType::Regular, 0o644, 0)
                    .map(drop)
                    .unwrap();
            }
            "mkdir" => {
                ready(self);
                self.fs.mkdir(&who, &dir, &name, 0o755).map(drop).unwrap();
            }
            "symlink" => {
                ready(self);
                self.fs
                    .symlink(&who, &dir, &name, &target)
                    .map(drop)
                    .unwrap();
            }
            "link" => {
                ready(self);
                self.fs.link(&who, &node, &dir, &name).unwrap();
            }
            "rename" => {
                ready(self);
                self.fs
                    .rename(&who, &from, &old, &from, &name, RenameFlags::empty())
                    .unwrap();
            }
            "rename far" => {
                ready(self);
                self.fs
                    .rename(&who, &from, &old, &dir, &name, RenameFlags::empty())
                    .unwrap();
            }
            "rename over" | "exchange" => {
                let flags = match kind {
                    "exchange" => RenameFlags::EXCHANGE,
                    _ => RenameFlags::empty(),
                };
                let (to, over, _) = self.some(false).unwrap();
                ready(self);
                self.fs
                    .rename(&who, &from, &old, &to, &over, flags)
                    .unwrap();
            }
            "unlink" | "unlink mapped" => {
                drop((open, node));
                ready(self);
                self.fs.unlink(&who, &from, &old).unwrap();
            }
            "rmdir" => {
                self.fs.mkdir(&who, &dir, &name, 0o755).map(drop).unwrap();
                self.finish();
                ready(self);
                self.fs.rmdir(&who, &dir, &name).unwrap();
            }
            "chmod" => {
                let set = SetAttr {
                    perm: Some(0o600 | self.below(64) as u16),
                    ..SetAttr::default()
                };
                ready(self);
                self.fs.setattr(&who, &node, &set, None).unwrap();
            }
            "xattr short" | "xattr long" => {
                let value = if kind == "xattr long" { &long } else { &short };
                ready(self);
                let key = format!("user.{}", self.made);
                let set = self.fs.setxattr(&who, &node, key.as_bytes(), value, any);
                // The values of one inode are limited in sum.
                assert!(matches!(set, Ok(()) | Err(Errno::ENOSPC)), "{set:?}");
            }
            "xattr gone" => {
                let value = if self.made.is_multiple_of(2) {
                    &long
                } else {
                    &short
                };
                self.fs
                    .setxattr(&who, &node, b"user.goes", value, any)
                    .unwrap();
                self.finish();
                ready(self);
                self.fs.removexattr(&who, &node, b"user.goes").unwrap();
            }
            "write inline" => {
                ready(self);
                self.write(&open, 0, &inline);
            }
            "outgrow inline" => {
                ready(self);
                self.write(&open, 3000, &long[..3000]);
            }
            "write page" => {
                let fresh = self.file(&dir, &name);
                self.finish();
                ready(self);
                self.write(&fresh, 0, &[1; BLOCK]);
            }
            "overwrite" => {
                ready(self);
                self.write(&open, at, &long);
            }
            "write sparse" => {
                let many = self.file(&self.fs.root(), b"many extents");
                let at = self.below(12_000) * page;
                ready(self);
                self.write(&many, at, &[2; BLOCK]);
            }
            "truncate" | "extend" => {
                let to = if kind == "extend" {
                    size + self.below(1 << 20)
                } else {
                    self.below(size)
                };
                let set = SetAttr {
                    size: Some(to),
                    ..SetAttr::default()
                };
                ready(self);
                self.fs.setattr(&who, &node, &set, Some(&open)).unwrap();
            }
            "punch" => {
                let len = 1 + self.below(6 * page);
                ready(self);
                allocate(keep | Fallocate::PUNCH_HOLE, at, len);
            }
            "zero" => {
                let len = 1 + self.below(6 * page);
                ready(self);
                allocate(Fallocate::ZERO_RANGE, at, len);
            }
            "allocate" => {
                let len = 1 + self.below(64 * page);
                ready(self);
                allocate(keep, size + page, len);
            }
            "collapse" => {
                self.fs
                    .setattr(
                        &who,
                        &node,
                        &SetAttr {
                            size: Some(size.next_multiple_of(page)),
                            ..SetAttr::default()
                        },
                        Some(&open),
                    )
                    .unwrap();
                self.finish();
                ready(self);
                allocate(Fallocate::COLLAPSE_RANGE, 0, page);
            }
            "copy" => {
                // Within one file the ranges would overlap.
                let others = (0..100).filter_map(|_| self.some(true));
                let mut others = others.map(|(_, _, other)| other);
                let other = others.find(|other| other.ino() != node.ino()).unwrap();
                let to = self.fs.open(&who, &other, flags).unwrap();
                ready(self);
                self.fs
                    .copy_file_range(&who, &open, at, &to, 0, 6 * page)
                    .unwrap();
            }
            _ => unreachable!("{kind}"),
        }
    }

    /// Blocks that any checkpoint of these trees takes, for which no operation reserves.
    fn fixed(&self) -> u64 {
        TreeCost::default().blocks(
            &self.store.inner.reader.freeze_barrier.pass().roots,
            u64::MAX,
        )
    }

    /// Runs one operation of this kind: what it reserved, and what it used.
    fn measure(&mut self, kind: &str) -> (Blocks, Blocks) {
        let inner = Arc::clone(&self.store.inner);
        let mut before = 0;
        self.make(kind, &mut |volume| {
            volume.finish();
            inner.recorder.take();
            before = inner.journal.used();
        });
        let (kept, at_once) = inner.recorder.take();
        let waited = !inner
            .reader
            .freeze_barrier
            .pass()
            .active
            .dirty_files()
            .is_empty();
        self.fs.sync().unwrap();
        let (_, later) = inner.recorder.take();
        // The commit journals extents in one more block, of the part left to commits.
        assert!(later.pages <= 60, "more than fits one block");
        let journal = (inner.journal.used() - before) / BLOCK as u64;
        let journal = journal - u64::from(waited && journal > 1);
        self.store.checkpoint().unwrap();
        let (_, merged) = inner.recorder.take();
        let used = Blocks {
            pages: at_once.pages + later.pages,
            nodes: merged.nodes,
            journal,
        };
        (kept, used)
    }
}

/// Prints a line for each kind, and lists those that reserved more than twice what they used.
fn averages(counters: &BTreeMap<&str, Counter>) -> Vec<String> {
    let mut dear = Vec::new();
    for kind in KINDS {
        let Counter { kept, used } = counters[kind];
        let columns = [
            ("pages", kept.pages, used.pages),
            ("nodes", kept.nodes, used.nodes),
            ("journal", kept.journal, used.journal),
        ];
        let shown = columns.map(|(of, kept, used)| {
            let ratio = kept as f64 / used.max(1) as f64;
            if kept * 10 > used * most(kind, of) {
                dear.push(format!("{kind}: {ratio:.2} of {of}"));
            }
            format!("{of} {kept:6}/{used:6} {ratio:5.2}")
        });
        println!("{kind:16} {}", shown.join("  "));
    }
    dear
}

/// The limit of what may be reserved on average, in tenths of what is used: twenty, unless the
/// worst case is rare.
fn most(kind: &str, of: &str) -> u64 {
    match (kind, of) {
        // Half of these overwrite allocated blocks, or punch holes.
        ("write sparse" | "punch", "nodes") => 25,
        // The access time of the source is a change of its own.
        ("copy", "nodes") => 25,
        // It may have attributes.
        ("rmdir", "nodes") => 25,
        // A file that is renamed over is counted twice: when it loses its name, and when it is
        // freed.
        ("rename over", "nodes" | "journal") => 35,
        // Each hole may need a record of maximal length.
        ("copy", "journal") => 30,
        _ => 20,
    }
}

#[test]
fn no_operation_takes_more_than_was_kept_for_it_and_on_average_half_of_it_at_least() {
    let seed = seed(rand::random());
    let mut volume = Volume::new(seed);
    let mut counters: BTreeMap<&str, Counter> = BTreeMap::new();
    for round in 0..ROUNDS {
        for kind in KINDS {
            let fixed = volume.fixed();
            let (kept, used) = volume.measure(kind);
            let covered = used.pages <= kept.pages
                && used.nodes <= kept.nodes + fixed
                && used.journal <= kept.journal;
            assert!(
                covered,
                "seed {seed}, {kind}, round {round}: {kept:?} was kept, {fixed} are there, {used:?} was taken"
            );
            let counter = counters.entry(kind).or_default();
            counter.kept += kept;
            counter.used += used;
        }
    }
    let dear = averages(&counters);
    assert!(dear.is_empty(), "seed {seed}: {dear:?}");
}

#[test]
fn what_was_kept_for_many_operations_is_enough_for_the_checkpoint_of_them_all() {
    let seed = seed(rand::random());
    let mut volume = Volume::new(seed);
    for round in 0..ROUNDS {
        volume.finish();
        let inner = Arc::clone(&volume.store.inner);
        inner.recorder.take();
        let fixed = volume.fixed();
        for _ in 0..1 + volume.below(60) {
            let kind = KINDS[volume.random.random_range(0..KINDS.len())];
            if !SETTLING.contains(&kind) {
                volume.make(kind, &mut |_| {});
            }
        }
        volume.finish();
        let (kept, used) = inner.recorder.take();
        assert!(
            used.pages <= kept.pages && used.nodes <= kept.nodes + fixed,
            "seed {seed}, round {round}: {kept:?} was kept, {fixed} are there, {used:?} was taken"
        );
    }
}
