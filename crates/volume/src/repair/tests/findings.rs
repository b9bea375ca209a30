//! Each finding, in a volume that was forged to have it.

use super::*;
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
