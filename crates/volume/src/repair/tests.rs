//! Forges every finding, and checks that it is found and repaired.

mod devices;
mod findings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_core::store::{Behind, Change, InodeRecord, Store, StoredSpace};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{FileFlags, FileType, Ino, Time};

use super::names::{Changes, Name};
use super::room::Room;
use super::write::{self, Writer};
use super::*;
use crate::check::BlockSet;
use crate::nodes::Nodes;
use crate::space::Extent;
use crate::store::NameHasher;
use crate::store::{Held, Value};
use crate::tree::{self, Contents, DataKey, DataKind, Entries, EntryKey, Inode, Inodes, NodeCache};
use crate::{FormatOptions, OpenOptions, VolumeStore, format};

const DIR: Ino = Ino(2);
const BELOW: Ino = Ino(3);
const SMALL: Ino = Ino(4);
const LARGE: Ino = Ino(5);
const LINK: Ino = Ino(6);
const PATTERN: u8 = 0x5a;

fn record(ino: Ino, kind: FileType, nlink: u32, size: u64, parent: Ino) -> InodeRecord {
    InodeRecord {
        ino,
        kind,
        perm: 0o755,
        nlink,
        uid: 1,
        gid: 2,
        rdev: 0,
        size,
        atime: Time(1),
        mtime: Time(1),
        ctime: Time(1),
        btime: Time(1),
        parent,
        xattrs: ino == SMALL,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

fn entry(dir: Ino, cookie: u64, name: &'static [u8], ino: Ino, kind: FileType) -> Change<'static> {
    Change::Enter {
        dir,
        name,
        cookie,
        ino,
        kind,
    }
}

fn create(inode: InodeRecord, target: Option<&'static [u8]>) -> Change<'static> {
    Change::Create { inode, target }
}

/// A closed volume with every kind of object.
fn sound() -> Arc<dyn BlockDevice> {
    use FileType::{Directory, Regular, Symlink};
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(4 << 20));
    let options = FormatOptions {
        seed: Some(1),
        group_blocks: Some(300),
        ..FormatOptions::default()
    };
    format(&device, &options).unwrap();
    let store = VolumeStore::open(Arc::clone(&device), &OpenOptions::default()).unwrap();
    let inline = vec![PATTERN; 100];
    let blocks = vec![PATTERN; 8192];
    let value = vec![PATTERN; 6000];
    let xattr = |name, value| Change::Xattr {
        ino: SMALL,
        name,
        value: Some(value),
    };
    let batch = [
        create(record(Ino::ROOT, Directory, 3, 0, Ino::ROOT), None),
        create(record(DIR, Directory, 3, 0, Ino::ROOT), None),
        entry(Ino::ROOT, 3, b"dir", DIR, Directory),
        create(record(BELOW, Directory, 2, 0, DIR), None),
        entry(DIR, 3, b"below", BELOW, Directory),
        create(record(SMALL, Regular, 2, 0, DIR), None),
        entry(DIR, 4, b"small", SMALL, Regular),
        entry(DIR, 5, b"hard", SMALL, Regular),
        Change::Write {
            ino: SMALL,
            offset: 0,
            data: &inline,
        },
        Change::Attributes {
            inode: record(SMALL, Regular, 2, 100, DIR),
        },
        xattr(&b"user.a"[..], &b"value"[..]),
        xattr(b"user.large", &value),
        create(record(LARGE, Regular, 1, 0, DIR), None),
        entry(DIR, 6, b"large", LARGE, Regular),
        Change::Write {
            ino: LARGE,
            offset: 0,
            data: &blocks,
        },
        Change::Attributes {
            inode: record(LARGE, Regular, 1, 8192, DIR),
        },
        create(record(LINK, Symlink, 1, 5, Ino::ROOT), Some(b"dir/x")),
        entry(Ino::ROOT, 4, b"link", LINK, Symlink),
    ];
    store.change(&batch).unwrap();
    store.close().unwrap();
    device
}

/// Changes to the trees of a volume.
#[derive(Default)]
struct Forgery {
    inodes: BTreeMap<Ino, Option<Inode>>,
    names: Changes,
    data: contents::Changes,
    orphans: BTreeMap<Ino, Option<Inode>>,
    /// Leaves the hash tree alone.
    keep_hashes: bool,
    /// Sets the bit of this block in the bitmaps.
    block: Option<(u64, bool)>,
    superblock: Option<fn(&mut Superblock)>,
}

impl Forgery {
    fn inode(mut self, record: InodeRecord) -> Self {
        let inode = inode(record);
        self.inodes.insert(inode.record.ino, Some(inode));
        self
    }

    fn name(mut self, dir: Ino, cookie: u64, bytes: &[u8], ino: Ino, kind: FileType) -> Self {
        let name = Name {
            ino,
            kind,
            bytes: bytes.into(),
        };
        self.names.insert(EntryKey { dir, cookie }, Some(name));
        self
    }

    fn no_name(mut self, dir: Ino, cookie: u64) -> Self {
        self.names.insert(EntryKey { dir, cookie }, None);
        self
    }

    fn data(mut self, ino: Ino, kind: DataKind, offset: u64, held: Option<Held>) -> Self {
        self.data.insert(DataKey { ino, kind, offset }, held);
        self
    }
}

fn inode(record: InodeRecord) -> Inode {
    Inode {
        record,
        next_cookie: 0,
        flags: 0,
    }
}

fn extent(block: u64, blocks: u32) -> Held {
    Held::Extent(tree::Extent {
        block,
        blocks,
        generation: 1,
        unwritten: false,
        shared: false,
    })
}

fn all_trees(device: &Arc<dyn BlockDevice>) -> (Superblock, NodeCache<Nodes>) {
    let superblock = newest_superblock(device).unwrap();
    let nodes = Nodes {
        device: Arc::clone(device),
        volume: superblock.identity(),
    };
    (superblock, NodeCache::new(nodes, 1 << 20))
}

/// Writes the changes, like a program with a bug.
fn forge(device: &Arc<dyn BlockDevice>, forgery: &Forgery) {
    let (mut superblock, cache) = all_trees(device);
    let used = BlockSet::new(superblock.layout());
    write::nodes(&cache, &superblock, &used);
    write::data(&cache, &superblock, &used);
    let generation = superblock.generation + 1;
    let mut writer = Writer {
        cache: &cache,
        room: Room::new(Arc::clone(device), used),
        generation,
    };
    let roots = superblock.roots;
    let inodes = writer.tree::<Inodes, Inode>(roots[0][0], false, &forgery.inodes);
    let entries = writer.tree::<Entries, Name>(roots[1][0], false, &forgery.names);
    let entries = entries.unwrap();
    let data = writer.tree::<Contents, Held>(roots[3][0], false, &forgery.data);
    let orphans = writer.tree::<Inodes, Inode>(superblock.orphans, false, &forgery.orphans);
    let hashes = match forgery.keep_hashes {
        true => roots[2][0],
        false => writer.hashes(entries, superblock.hash_seed).unwrap(),
    };
    let inodes = inodes.unwrap();
    superblock.roots =
        [inodes, entries, hashes, data.unwrap()].map(|root| [root, None, None, None]);
    superblock.orphans = orphans.unwrap();
    superblock.inodes = inodes.map_or(0, |root| root.records);
    superblock.generation = generation;
    let layout = superblock.layout();
    let used = BlockSet::new(layout);
    write::nodes(&cache, &superblock, &used);
    write::data(&cache, &superblock, &used);
    match forgery.block {
        Some((block, true)) => drop(used.insert(Extent::new(block, 1))),
        Some((block, false)) => used.remove(block),
        None => {}
    }
    superblock.seal = write::bitmaps(device, &layout, generation, &used).unwrap();
    if let Some(change) = forgery.superblock {
        change(&mut superblock);
    }
    for slot in crate::superblock::SLOTS {
        device.write(slot * 4096, &superblock.encode(slot)).unwrap();
    }
}

fn codes(report: &Report) -> BTreeSet<&'static str> {
    report.findings.iter().map(Finding::code).collect()
}

/// The blocks of the large file, and one unreferenced block.
fn places(device: &Arc<dyn BlockDevice>) -> (u64, u64) {
    let (superblock, cache) = all_trees(device);
    let data = tree::Tree::<Contents, _>::new(&cache, superblock.roots[3][0]);
    let key = DataKey::first(LARGE, DataKind::Extent);
    let large = data.get(&key, |value| write::blocks_of(&value).unwrap().start);
    let used = BlockSet::new(superblock.layout());
    write::nodes(&cache, &superblock, &used);
    write::data(&cache, &superblock, &used);
    let mut blocks = superblock.groups_start + 2..superblock.blocks;
    let free = blocks.find(|block| !used.has(*block)).unwrap();
    (large.unwrap().unwrap(), free + 20)
}

/// The unchanged files of the sound volume.
fn kept(device: &Arc<dyn BlockDevice>) -> BTreeSet<&'static str> {
    let store = VolumeStore::open(Arc::clone(device), &OpenOptions::default()).unwrap();
    let mut kept = BTreeSet::new();
    let leads = |dir, name: &[u8], ino| {
        let mut found = Vec::new();
        // A name without an inode counts as missing.
        let _ = store.look_up(dir, &[name], &mut found);
        let found = found.pop().flatten();
        found.is_some_and(|(entry, inode)| entry.ino == ino && inode.is_some())
    };
    let rest = |ino| {
        let (mut records, mut rests) = (Vec::new(), Vec::new());
        store.load_inodes(&[ino], &mut records).unwrap();
        store.load_rests(&records, &mut rests).unwrap();
        rests.pop().unwrap_or_default()
    };
    let holds = |ino, len: usize| {
        let mut bytes = vec![0; len];
        store.read_data(ino, 0, &mut bytes).unwrap();
        bytes.iter().all(|byte| *byte == PATTERN)
    };
    if leads(Ino::ROOT, b"dir", DIR) && leads(DIR, b"below", BELOW) {
        kept.insert("dirs");
    }
    if leads(DIR, b"small", SMALL) && holds(SMALL, 100) {
        kept.insert("small");
    }
    if leads(DIR, b"large", LARGE) && holds(LARGE, 8192) {
        kept.insert("large");
    }
    if leads(Ino::ROOT, b"link", LINK) && rest(LINK).target.as_deref() == Some(b"dir/x") {
        kept.insert("link");
    }
    if rest(SMALL).xattrs.len() == 2 {
        kept.insert("xattrs");
    }
    store.close().unwrap();
    kept
}

const ALL: [&str; 5] = ["dirs", "large", "link", "small", "xattrs"];

/// Forges, and expects this finding among others. After the repair, everything but `lost` is
/// unchanged.
fn found_and_repaired(code: &'static str, lost: &[&str], forgery: &Forgery) {
    let device = sound();
    forge(&device, forgery);
    let options = CheckOptions::default();
    let outcome = repair(&device, &options, &|_, _, _| {}).unwrap();
    let before = codes(&outcome.before);
    assert!(before.contains(code), "{code}: {before:?}");
    assert!(
        outcome.after.is_clean(),
        "{code}: {:#?} after {:#?}",
        outcome.after.findings,
        outcome.actions
    );
    assert!(!outcome.actions.is_empty());
    let expected: BTreeSet<&str> = ALL.into_iter().filter(|one| !lost.contains(one)).collect();
    assert_eq!(kept(&device), expected, "{code}: {:#?}", outcome.actions);
    let again = repair(&device, &options, &|_, _, _| {}).unwrap();
    assert!(again.actions.is_empty(), "{code}: {:?}", again.actions);
}

fn forged(change: impl FnOnce(Forgery) -> Forgery) -> Forgery {
    change(Forgery::default())
}
