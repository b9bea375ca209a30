//! Forges every finding, and checks that it is found and repaired.

mod devices;

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

use FileType::{Directory, Regular};

#[test]
fn files_that_say_another_space_than_they_take_are_repaired() {
    for (ino, nlink, size, said) in [
        (SMALL, 2, 100, 0),
        (SMALL, 2, 100, 3),
        (LARGE, 1, 8192, 0),
        (LARGE, 1, 8192, 1),
        (LARGE, 1, 8192, 1 << 40),
        // The recorded space does not follow from its size.
        (LARGE, 1, 40_960, 10),
    ] {
        let says = InodeRecord {
            space: StoredSpace::of(said, size),
            ..record(ino, Regular, nlink, size, DIR)
        };
        found_and_repaired("space", &[], &forged(|forgery| forgery.inode(says)));
    }
    // A file without content that records space.
    let device = sound();
    let says = record(Ino(9), Regular, 1, 5000, DIR);
    let forgery = forged(|forgery| forgery.inode(says).name(DIR, 9, b"holes", Ino(9), Regular));
    forge(&device, &forgery);
    let outcome = repair(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
    assert!(codes(&outcome.before).contains("space"));
    assert!(outcome.after.is_clean(), "{:?}", outcome.after.findings);
    let store = VolumeStore::open(device, &OpenOptions::default()).unwrap();
    let mut found = Vec::new();
    store.load_inodes(&[Ino(9)], &mut found).unwrap();
    assert_eq!(found[0].space.pages(5000), Some(0));
}

#[test]
fn file_flags_that_an_inode_cannot_have_are_repaired() {
    let with = |flags, kind| InodeRecord {
        flags: FileFlags::from_bits_retain(flags),
        project: 5,
        ..match kind {
            Regular => record(SMALL, kind, 2, 100, DIR),
            _ => record(DIR, kind, 3, 0, Ino::ROOT),
        }
    };
    let inherit = FileFlags::PROJECT_INHERIT.bits();
    for says in [
        with(1 << 20, Regular),
        with(inherit, Regular),
        with(0x10 | 1, Directory),
    ] {
        found_and_repaired("file-flags", &[], &forged(|forgery| forgery.inode(says)));
    }
    for says in [with(0xf0, Regular), with(inherit, Directory)] {
        let device = sound();
        forge(&device, &forged(|forgery| forgery.inode(says)));
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(
            !report
                .findings
                .iter()
                .any(|finding| finding.code() == "file-flags")
        );
    }
}

#[test]
fn inodes_that_do_not_fit_their_names_are_repaired() {
    let small = record(SMALL, Regular, 2, 100, DIR);
    let case = |code, lost: &[&str], change: &dyn Fn(Forgery) -> Forgery| {
        found_and_repaired(code, lost, &forged(change));
    };
    case("links", &[], &|forgery| {
        forgery.inode(InodeRecord {
            nlink: 7,
            ..small.clone()
        })
    });
    case("links", &[], &|forgery| {
        forgery.inode(record(DIR, Directory, 9, 0, Ino::ROOT))
    });
    case("parent", &[], &|forgery| {
        forgery.inode(record(BELOW, Directory, 2, 0, Ino::ROOT))
    });
    case("nameless", &["large"], &|forgery| forgery.no_name(DIR, 6));
    case("nameless", &["dirs"], &|forgery| forgery.no_name(DIR, 3));
    case("orphan", &["large"], &|forgery| {
        let orphan = record(LARGE, Regular, 0, 8192, DIR);
        forgery.no_name(DIR, 6).inode(orphan)
    });
    case("no-orphan", &[], &|mut forgery| {
        forgery.orphans.insert(SMALL, Some(inode(small.clone())));
        forgery
    });
    case("no-root", &[], &|mut forgery| {
        forgery.inodes.insert(Ino::ROOT, None);
        forgery
    });
    case("no-root", &[], &|forgery| {
        forgery.inode(record(Ino::ROOT, Regular, 1, 0, Ino::ROOT))
    });
}

#[test]
fn names_that_cannot_stay_go_and_what_they_led_to_is_kept() {
    let case = |code, lost: &[&str], change: &dyn Fn(Forgery) -> Forgery| {
        found_and_repaired(code, lost, &forged(change));
    };
    case("directory-names", &[], &|forgery| {
        forgery.name(Ino::ROOT, 9, b"again", BELOW, Directory)
    });
    // A directory inside itself, unreachable from the root.
    case("unreachable", &["dirs"], &|forgery| {
        let forgery = forgery.no_name(Ino::ROOT, 3);
        forgery.name(BELOW, 3, b"dir", DIR, Directory)
    });
    case("entry-directory", &[], &|forgery| {
        forgery.name(LARGE, 3, b"name", SMALL, Regular)
    });
    case("entry-nowhere", &[], &|forgery| {
        forgery.name(DIR, 9, b"device", Ino(99), FileType::BlockDevice)
    });
    case("entry-nowhere", &[], &|forgery| {
        forgery.name(DIR, 9, b"file", Ino(99), Regular)
    });
    case("entry-nowhere", &["small"], &|mut forgery| {
        forgery.inodes.insert(LARGE, None);
        forgery.inodes.insert(SMALL, None);
        // The small file is found again as well, by its length.
        forgery.no_name(DIR, 4).no_name(DIR, 5)
    });
    case("entry-type", &[], &|forgery| {
        forgery.name(DIR, 5, b"hard", SMALL, Directory)
    });
    case("entry-name", &["large"], &|forgery| {
        forgery.name(DIR, 6, b"a/b", LARGE, Regular)
    });
    case("same-name", &["large"], &|forgery| {
        forgery.name(DIR, 6, b"small", LARGE, Regular)
    });
    case("no-hash", &[], &|mut forgery| {
        forgery.keep_hashes = true;
        forgery
            .name(DIR, 9, b"third", SMALL, Regular)
            .inode(record(SMALL, Regular, 3, 100, DIR))
    });
    case("no-entry", &[], &|mut forgery| {
        forgery.keep_hashes = true;
        forgery
            .no_name(DIR, 5)
            .inode(record(SMALL, Regular, 1, 100, DIR))
    });
}

#[test]
fn content_that_cannot_be_is_repaired() {
    let (large, free) = places(&sound());
    let case = |code, lost: &[&str], change: &dyn Fn(Forgery) -> Forgery| {
        found_and_repaired(code, lost, &forged(change));
    };
    let bytes = |len| Some(Held::Inline(vec![PATTERN; len]));
    use DataKind::{Extent as Run, Inline};
    case("data-owner", &[], &|forgery| {
        forgery.data(Ino(77), Inline, 0, bytes(10))
    });
    case("data-type", &[], &|forgery| {
        forgery.data(DIR, Inline, 0, bytes(10))
    });
    case("data-type", &[], &|forgery| {
        forgery.data(LINK, Run, 0, Some(extent(free, 1)))
    });
    case("both-forms", &[], &|forgery| {
        forgery.data(LARGE, Inline, 0, bytes(9))
    });
    case("both-forms", &[], &|forgery| {
        forgery.data(SMALL, Run, 0, Some(extent(free, 1)))
    });
    case("length", &[], &|forgery| {
        forgery.data(SMALL, Inline, 0, bytes(150))
    });
    case("behind-end", &[], &|forgery| {
        forgery.data(LARGE, Run, 2, Some(extent(free, 3)))
    });
    case("overlap", &[], &|forgery| {
        forgery.data(LARGE, Run, 1, Some(extent(free, 1)))
    });
    case("no-target", &["link"], &|forgery| {
        forgery.data(LINK, Inline, 0, None)
    });
    case("outside", &["large"], &|forgery| {
        forgery.data(LARGE, Run, 0, Some(extent(1 << 40, 2)))
    });
    // Two files share blocks: both have them afterwards.
    case("used-twice", &[], &|forgery| {
        forgery
            .inode(record(Ino(50), Regular, 1, 8192, DIR))
            .name(DIR, 9, b"twin", Ino(50), Regular)
            .data(Ino(50), Run, 0, Some(extent(large, 2)))
    });
}

#[test]
fn attributes_that_cannot_be_are_repaired() {
    let (_, free) = places(&sound());
    let hasher = NameHasher::new(newest_superblock(&sound()).unwrap().hash_seed);
    let attribute = |name: &[u8], value| Held::Xattr {
        name: name.into(),
        value,
    };
    let here = || Value::Here(b"value"[..].into());
    let at = |name: &[u8], ordinal| DataKey::xattr(SMALL, hasher.hash(name), ordinal).offset;
    let case = |code, lost: &[&str], change: &dyn Fn(Forgery) -> Forgery| {
        found_and_repaired(code, lost, &forged(change));
    };
    case("xattr-place", &[], &|forgery| {
        forgery
            .data(SMALL, DataKind::Xattr, at(b"user.a", 0), None)
            .data(
                SMALL,
                DataKind::Xattr,
                12,
                Some(attribute(b"user.a", here())),
            )
    });
    case("xattr-flag", &[], &|forgery| {
        let small = record(SMALL, Regular, 2, 100, DIR);
        forgery.inode(InodeRecord {
            xattrs: false,
            ..small
        })
    });
    case("same-xattr", &[], &|forgery| {
        let again = attribute(b"user.a", here());
        forgery.data(SMALL, DataKind::Xattr, at(b"user.a", 3), Some(again))
    });
    case("value-length", &[], &|forgery| {
        let Held::Extent(extent) = extent(free, 1) else {
            return forgery;
        };
        let value = Value::Elsewhere { extent, len: 9000 };
        let long = attribute(b"user.long", value);
        forgery.data(SMALL, DataKind::Xattr, at(b"user.long", 0), Some(long))
    });
}

#[test]
fn bitmaps_and_counts_are_written_anew() {
    let (large, free) = places(&sound());
    let block = |block, used| Forgery {
        block: Some((block, used)),
        ..Forgery::default()
    };
    found_and_repaired("leaked", &[], &block(free, true));
    found_and_repaired("not-marked", &[], &block(large, false));
    let superblock = |change: fn(&mut Superblock)| Forgery {
        superblock: Some(change),
        ..Forgery::default()
    };
    found_and_repaired("seal", &[], &superblock(|it| it.seal.fingerprint ^= 1));
    found_and_repaired("inode-count", &[], &superblock(|it| it.inodes += 5));
    found_and_repaired("inode-number", &[], &superblock(|it| it.last_ino = 2));
    found_and_repaired("no-hash", &[], &superblock(|it| it.roots[2][0] = None));
    found_and_repaired(
        "used-twice",
        &[],
        &superblock(|it| it.orphans = it.roots[0][0]),
    );
}

#[test]
fn what_a_later_version_wrote_is_left_alone() {
    let device = sound();
    let forgery = Forgery {
        superblock: Some(|it| it.roots[1][2] = it.roots[1][0]),
        ..Forgery::default()
    };
    forge(&device, &forgery);
    let outcome = repair(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
    assert!(codes(&outcome.before).contains("root"));
    assert!(outcome.actions.is_empty() && !outcome.after.is_clean());
}
