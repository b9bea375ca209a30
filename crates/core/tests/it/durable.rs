//! What the options `sync` and `dirsync` make durable before a call returns.

use holdfast_core::types::{Caller, FileType, OpenFlags, RenameFlags, Result, SetAttr, XattrSet};
use holdfast_core::{FileSystem, Node, Options};
use holdfast_testkit::store::{ModelStore, Record, Recorded, RecordingStore};
use std::sync::Arc;

/// What the steps work on: a directory, with a file in it.
struct Place<'f> {
    fs: &'f FileSystem,
    who: Caller,
    dir: Node,
    file: Node,
}

type Step = (&'static str, fn(&Place<'_>) -> Result<()>);

/// Changes of names, each of which finds what those before it left.
const NAMES: [Step; 11] = [
    ("create", |at| {
        let flags = OpenFlags::READ_WRITE;
        at.fs
            .create(&at.who, &at.dir, b"made", 0o600, flags)
            .map(drop)
    }),
    ("mkdir", |at| {
        at.fs.mkdir(&at.who, &at.dir, b"below", 0o700).map(drop)
    }),
    ("mknod", |at| {
        let (name, kind) = (b"pipe", FileType::Fifo);
        at.fs
            .mknod(&at.who, &at.dir, name, kind, 0o600, 0)
            .map(drop)
    }),
    ("symlink", |at| {
        at.fs
            .symlink(&at.who, &at.dir, b"symlink", b"made")
            .map(drop)
    }),
    ("link", |at| at.fs.link(&at.who, &at.file, &at.dir, b"link")),
    ("rename within", |at| {
        rename(
            at,
            &at.dir,
            b"made",
            &at.dir,
            b"moved",
            RenameFlags::empty(),
        )
    }),
    ("rename over", |at| {
        rename(
            at,
            &at.dir,
            b"moved",
            &at.dir,
            b"link",
            RenameFlags::empty(),
        )
    }),
    ("exchange", |at| {
        rename(
            at,
            &at.dir,
            b"link",
            &at.dir,
            b"pipe",
            RenameFlags::EXCHANGE,
        )
    }),
    ("rename to another", |at| {
        let root = at.fs.root();
        rename(at, &at.dir, b"pipe", &root, b"away", RenameFlags::empty())
    }),
    ("unlink", |at| at.fs.unlink(&at.who, &at.dir, b"symlink")),
    ("rmdir", |at| at.fs.rmdir(&at.who, &at.dir, b"below")),
];

/// Changes of inodes.
const INODES: [Step; 3] = [
    ("write", |at| {
        let file = at.fs.open(&at.who, &at.file, OpenFlags::READ_WRITE)?;
        at.fs.write(&at.who, &file, 0, b"content").map(drop)
    }),
    ("truncate", |at| {
        let size = SetAttr {
            size: Some(3),
            ..SetAttr::default()
        };
        at.fs.setattr(&at.who, &at.file, &size, None).map(drop)
    }),
    ("setxattr", |at| {
        at.fs
            .setxattr(&at.who, &at.file, b"user.a", b"value", XattrSet::Any)
    }),
];

fn rename(
    at: &Place<'_>,
    from: &Node,
    old: &[u8],
    to: &Node,
    new: &[u8],
    flags: RenameFlags,
) -> Result<()> {
    at.fs.rename(&at.who, from, old, to, new, flags)
}

/// Which steps change the store and leave nothing that a commit has not made durable?
fn durable(options: Options, steps: &[Step]) -> Vec<&'static str> {
    let store = RecordingStore::new(Arc::new(ModelStore::new()), Record::default());
    let fs = FileSystem::new(store.clone(), options).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let dir = fs.mkdir(&who, &root, b"dir", 0o700).unwrap();
    let flags = OpenFlags::READ_WRITE;
    let file = fs.create(&who, &dir, b"file", 0o600, flags).unwrap();
    let file = file.node().clone();
    let at = Place {
        fs: &fs,
        who,
        dir,
        file,
    };
    let is_durable = |(name, step): &Step| {
        store.hook().clear();
        step(&at).unwrap_or_else(|error| panic!("{name}: {error}"));
        let events = store.hook().events();
        assert!(!events.is_empty(), "{name} changed nothing");
        matches!(events.last(), Some(Recorded::Commit(_)))
    };
    let kept = steps.iter().filter(|step| is_durable(step));
    kept.map(|(name, _)| *name).collect()
}

fn names(steps: &[Step]) -> Vec<&'static str> {
    steps.iter().map(|(name, _)| *name).collect()
}

#[test]
fn changes_of_names_are_durable_with_dirsync_and_others_are_not() {
    let options = Options {
        dirsync: true,
        ..Options::default()
    };
    assert_eq!(durable(options, &NAMES), names(&NAMES));
    assert_eq!(durable(options, &INODES), names(&[]));
}

#[test]
fn every_change_is_durable_with_sync_and_none_without() {
    let options = Options {
        sync: true,
        ..Options::default()
    };
    for steps in [&NAMES[..], &INODES] {
        assert_eq!(durable(options, steps), names(steps));
        assert_eq!(durable(Options::default(), steps), names(&[]));
    }
}
