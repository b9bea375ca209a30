//! Listings that go on at a position from an earlier listing, after the directory changed.
//!
//! The kernel keeps a listing and compares it with the directory only where a reader begins at
//! the start. What a reader finds elsewhere is as new as what the file system made the kernel drop.

use super::on_each_transport_with;
use holdfast_core::{FileSystem, types::Caller};
use holdfast_fuse::{Session, wire::Opcode};
use rustix::fs::{CWD, Mode, OFlags, RawDir, RenameFlags, SeekFrom};
use std::{
    fs::{self, File},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, symlink},
    },
    path::Path,
};

/// A name, its inode number, and the position behind it.
type Entry = (String, u64, u64);

fn on_each(test: impl Fn(&FileSystem, &Session, &Path)) {
    // Directories that the kernel opens by itself, and those that are opened by the file system.
    for no_opendir in [true, false] {
        on_each_transport_with(&|config| config.no_opendir = no_opendir, &test);
    }
}

fn open(dir: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::empty()).unwrap()
}

/// At most so many entries from this position on.
fn entries(dir: impl AsFd, position: u64, most: usize) -> Vec<Entry> {
    rustix::fs::seek(&dir, SeekFrom::Start(position)).unwrap();
    // Small: a reader that stops has not met the end.
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut listing = RawDir::new(dir, &mut buffer);
    let mut found = Vec::new();
    while found.len() < most
        && let Some(entry) = listing.next()
    {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap().to_owned();
        found.push((name, entry.ino(), entry.next_entry_cookie()));
    }
    found
}

fn all(dir: &Path) -> Vec<Entry> {
    entries(open(dir), 0, usize::MAX)
}

/// Each position shows the names of `now` with a greater position, and besides only names that are
/// newer than all of `positions`.
fn assert_current(dir: &Path, positions: &[Entry], now: &[Entry]) {
    let newest = positions.iter().map(|(_, _, at)| *at).max().unwrap();
    let newest = newest.max(now.iter().map(|(_, _, at)| *at).max().unwrap());
    for (_, _, position) in positions {
        let expected = now.iter().filter(|(_, _, at)| at > position).cloned();
        let expected: Vec<Entry> = expected.collect();
        let mut found = entries(open(dir), *position, usize::MAX);
        found.retain(|(_, _, at)| *at <= newest);
        assert_eq!(found, expected, "behind {position}");
    }
}

/// Requests for a part of a listing.
fn listings(session: &Session) -> u64 {
    let totals = session.totals();
    let of = [Opcode::ReadDir, Opcode::ReadDirPlus];
    let counts = totals
        .requests
        .iter()
        .filter(|(opcode, _)| of.contains(opcode));
    counts.map(|(_, count)| count).sum()
}

fn make(dir: &Path, names: std::ops::Range<usize>) {
    for n in names {
        File::create(dir.join(format!("name {n}"))).unwrap();
    }
}

/// Names of one directory as the file system itself lists them.
fn listed_by_library(core: &FileSystem, name: &[u8]) -> Vec<Entry> {
    let node = core.lookup(&Caller::root(), &core.root(), name).unwrap();
    let flags = holdfast_core::types::OpenFlags::DIRECTORY;
    let opened = core.open(&Caller::root(), &node, flags).unwrap();
    let mut found = Vec::new();
    core.read_dir(&opened, 0, &mut |entry| {
        let name = String::from_utf8(entry.name.to_vec()).unwrap();
        found.push((name, entry.ino.0, entry.cookie));
        true
    })
    .unwrap();
    found
}

/// One change of the directory `d`, in which there are names from 0 to 31; beside it is `e`.
type Change = fn(&Path);

const CHANGES: [Change; 11] = [
    |root| {
        for n in 3..28 {
            fs::remove_file(root.join(format!("d/name {n}"))).unwrap();
        }
    },
    |root| make(&root.join("d"), 32..40),
    |root| fs::rename(root.join("d/name 5"), root.join("d/other")).unwrap(),
    |root| fs::rename(root.join("d/name 5"), root.join("d/name 9")).unwrap(),
    |root| fs::rename(root.join("d/name 5"), root.join("e/name 5")).unwrap(),
    |root| fs::rename(root.join("e/there"), root.join("d/there")).unwrap(),
    |root| {
        let (one, other) = (root.join("d/name 5"), root.join("e/there"));
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    },
    |root| fs::create_dir(root.join("d/directory")).unwrap(),
    |root| symlink("target", root.join("d/link")).unwrap(),
    |root| fs::hard_link(root.join("e/there"), root.join("d/link")).unwrap(),
    |root| fs::remove_dir(root.join("d/empty")).unwrap(),
];

#[test]
fn a_position_from_before_a_change_shows_what_is_there_now() {
    on_each(|core, _, dir| {
        let d = dir.join("d");
        for (n, change) in CHANGES.iter().enumerate() {
            fs::create_dir(&d).unwrap();
            make(&d, 0..32);
            fs::create_dir(d.join("empty")).unwrap();
            fs::create_dir(dir.join("e")).unwrap();
            File::create(dir.join("e/there")).unwrap();
            let positions = all(&d);
            // The second listing is the one that is kept.
            assert_eq!(all(&d), positions);
            change(dir);
            let now = listed_by_library(core, b"d");
            assert_ne!(now, positions, "change {n}");
            // A listing ends with the names that were there when one began at the start: they may
            // be one listing, where the kernel opens directories by itself.
            let (_, _, last) = positions[positions.len() - 1];
            let old = now.iter().filter(|(_, _, at)| *at <= last).cloned();
            assert_current(&d, &positions, &old.collect::<Vec<Entry>>());
            assert_eq!(all(&d), now);
            assert_current(&d, &positions, &now);
            fs::remove_dir_all(&d).unwrap();
            fs::remove_dir_all(dir.join("e")).unwrap();
        }
    });
}

#[test]
fn a_listing_that_was_under_way_while_names_went_is_not_kept() {
    on_each(|core, _, dir| {
        let d = dir.join("d");
        fs::create_dir(&d).unwrap();
        // More than one reply holds.
        make(&d, 0..600);
        let reader = open(&d);
        let begun = entries(&reader, 0, 10);
        // What the kernel has of it ends behind these.
        for n in 0..8 {
            fs::remove_file(d.join(format!("name {n}"))).unwrap();
        }
        let (_, _, last) = begun[9];
        let rest = entries(&reader, last, usize::MAX);
        let now = listed_by_library(core, b"d");
        assert_eq!(rest.len(), now.len() - 2);
        assert_current(&d, &begun, &now);
        // A reader that stays open begins anew, and goes on anywhere.
        assert_eq!(entries(&reader, 0, usize::MAX), now);
        let (gone, _, position) = &rest[20];
        fs::remove_file(d.join(gone)).unwrap();
        let found = entries(&reader, *position, usize::MAX);
        assert_eq!(found, rest[21..]);
        assert_eq!(entries(&reader, rest[19].2, usize::MAX), found);
    });
}

#[test]
fn a_listing_is_kept_again_after_changes() {
    on_each(|_, session, dir| {
        let d = dir.join("d");
        fs::create_dir(&d).unwrap();
        make(&d, 0..600);
        for n in 0..10 {
            // One change while nothing is kept, one behind a listing, one within one.
            make(&d, 1000 + n..1001 + n);
            all(&d);
            fs::remove_file(d.join(format!("name {n}"))).unwrap();
            let reader = open(&d);
            let begun = entries(&reader, 0, 10);
            fs::remove_file(d.join(format!("name {}", 100 + n))).unwrap();
            entries(&reader, begun[9].2, usize::MAX);
            let kept = all(&d);
            // The access time that the first one moved is asked for by the second.
            assert_eq!(all(&d), kept);
            let asked = listings(session);
            assert_eq!(all(&d), kept);
            assert_eq!(listings(session), asked);
        }
    });
}

#[test]
fn the_parent_that_a_kept_listing_names_is_the_present_one() {
    on_each(|core, session, dir| {
        let parent = |path: &Path| all(path)[1].1;
        let number = |name: &str| fs::metadata(dir.join(name)).unwrap().ino();
        for name in ["a", "b", "a/moved", "b/other"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        for path in ["a/moved", "b/other"] {
            all(&dir.join(path));
            all(&dir.join(path));
        }
        fs::rename(dir.join("a/moved"), dir.join("b/moved")).unwrap();
        assert_eq!(parent(&dir.join("b/moved")), number("b"));
        all(&dir.join("b/moved"));
        fs::create_dir(dir.join("a/third")).unwrap();
        all(&dir.join("a/third"));
        let (one, other) = (dir.join("b/moved"), dir.join("a/third"));
        rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        assert_eq!((parent(&one), parent(&other)), (number("b"), number("a")));
        // By the library.
        let who = Caller::root();
        let node = |name: &[u8]| core.lookup(&who, &core.root(), name).unwrap();
        let (a, b) = (node(b"a"), node(b"b"));
        let flags = holdfast_core::types::RenameFlags::empty();
        core.rename(&who, &b, b"other", &a, b"other", flags)
            .unwrap();
        session.notifier().flush();
        assert_eq!(parent(&dir.join("a/other")), number("a"));
    });
}

#[test]
fn a_position_from_before_a_change_by_the_library_shows_what_is_there_now() {
    on_each(|core, session, dir| {
        let d = dir.join("d");
        fs::create_dir(&d).unwrap();
        make(&d, 0..600);
        let positions = all(&d);
        assert_eq!(all(&d), positions);
        let reader = open(&d);
        let begun = entries(&reader, 0, 10);
        let who = Caller::root();
        let node = core.lookup(&who, &core.root(), b"d").unwrap();
        for n in 3..28 {
            let name = format!("name {n}");
            core.unlink(&who, &node, name.as_bytes()).unwrap();
        }
        session.notifier().flush();
        let now = listed_by_library(core, b"d");
        assert_current(&d, &positions[..32], &now);
        let rest = entries(&reader, begun[9].2, usize::MAX);
        assert_eq!(rest, now[5..]);
        assert_current(&d, &positions[..32], &now);
    });
}
