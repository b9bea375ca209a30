//! Inodes that are open, and what others do to their names below.

use crate::{NEVER, NOTIFIED, over, over_with, seen};
use holdfast_core::FileSystem;
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, Fallocate, OpenFlags, RenameFlags, SetAttr, XattrSet};
use holdfast_hostdir::Options;
use rustix::fs::IFlags;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Of a mount that is told, of one that asks each time, and of one that believes what it was told
/// for a time.
const ALL: [Coherence; 3] = [NOTIFIED, NEVER, Coherence::For(Duration::from_secs(3600))];

/// What it is called, and how it is done in a directory.
type Fate = (&'static str, fn(&Path));

/// What others do to a name below: it goes, leads elsewhere, or its directory does.
const FATES: [Fate; 5] = [
    ("removed", |dir| {
        fs::remove_file(dir.join("below/file")).unwrap()
    }),
    ("replaced", |dir| {
        fs::write(dir.join("new"), b"another file, and longer").unwrap();
        fs::rename(dir.join("new"), dir.join("below/file")).unwrap();
    }),
    ("moved", |dir| {
        fs::rename(dir.join("below/file"), dir.join("moved")).unwrap()
    }),
    ("moved with its directory", |dir| {
        fs::rename(dir.join("below"), dir.join("elsewhere")).unwrap();
        fs::create_dir(dir.join("below")).unwrap();
        fs::write(dir.join("below/file"), b"another file").unwrap();
    }),
    ("of another kind", |dir| {
        fs::remove_file(dir.join("below/file")).unwrap();
        fs::create_dir(dir.join("below/file")).unwrap();
    }),
];

fn open(fs: &FileSystem, path: &[u8], flags: OpenFlags) -> holdfast_core::OpenFile {
    let (who, root) = (Caller::root(), fs.root());
    fs.open_at(&who, &root, path, flags, 0o644).unwrap()
}

fn read(fs: &FileSystem, file: &holdfast_core::OpenFile) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let len = fs.read(file, 0, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

#[test]
fn a_file_that_is_open_for_reading_stays_the_same() {
    for coherence in ALL {
        for (fate, befall) in FATES {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("below")).unwrap();
            fs::write(dir.path().join("below/file"), b"content").unwrap();
            let fs = over(dir.path(), coherence);
            // It was not read before: nothing of it is in memory but that it is there.
            let file = open(&fs, b"below/file", OpenFlags::empty());
            let kept = File::open(dir.path().join("below/file")).unwrap();
            befall(dir.path());
            fs.drop_caches().unwrap();
            let host = kept.metadata().unwrap();
            let attr = fs.attributes(file.node()).unwrap();
            let case = format!("{fate}, {coherence:?}");
            assert_eq!((attr.ino.0, attr.size), (host.ino(), 7), "{case}");
            if coherence == NEVER {
                assert_eq!(u64::from(attr.nlink), host.nlink(), "{case}");
            }
            assert_eq!(read(&fs, &file), b"content", "{case}");
        }
    }
}

#[test]
fn a_file_that_is_open_for_writing_stays_the_same_whatever_is_done_to_it() {
    for coherence in ALL {
        for (fate, befall) in FATES {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("below")).unwrap();
            fs::write(dir.path().join("below/file"), b"content").unwrap();
            let fs = over(dir.path(), coherence);
            let who = Caller::root();
            let file = open(&fs, b"below/file", OpenFlags::READ_WRITE);
            // One that reads it goes on when the writer has closed it.
            let reader = open(&fs, b"below/file", OpenFlags::empty());
            let kept = File::open(dir.path().join("below/file")).unwrap();
            befall(dir.path());
            let case = format!("{fate}, {coherence:?}");
            assert_eq!(fs.write(&who, &file, 7, b" and more"), Ok(9), "{case}");
            assert_eq!(fs.append(&who, &file, b"."), Ok((16, 1)), "{case}");
            assert_eq!(read(&fs, &file), b"content and more.", "{case}");
            let set = SetAttr {
                size: Some(7),
                perm: Some(0o600),
                ..SetAttr::default()
            };
            fs.setattr(&who, file.node(), &set, Some(&file))
                .expect(&case);
            let allocated = fs.fallocate(&who, &file, Fallocate::empty(), 0, 9);
            allocated
                .or_else(|error| match error {
                    Errno::EOPNOTSUPP => fs.write(&who, &file, 7, &[0; 2]).map(drop),
                    error => Err(error),
                })
                .expect(&case);
            fs.fsync(&file, false).expect(&case);
            let (name, value) = (b"user.name", b"value");
            let set = fs.setxattr(&who, file.node(), name, value, XattrSet::Any);
            if set != Err(Errno::EOPNOTSUPP) {
                set.expect(&case);
                let has = fs.getxattr(&who, reader.node(), name);
                assert_eq!(has.as_deref(), Ok(&value[..]), "{case}");
            }
            drop(file);
            fs.drop_caches().unwrap();
            assert_eq!(read(&fs, &reader), b"content\0\0", "{case}");
            let host = kept.metadata().unwrap();
            assert_eq!((host.len(), host.mode() & 0o777), (9, 0o600), "{case}");
        }
    }
}

#[test]
fn what_is_replaced_or_removed_here_while_it_is_open_stays_the_same() {
    for coherence in [NOTIFIED, NEVER, Coherence::Exclusive] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), b"content").unwrap();
        fs::write(dir.path().join("new"), b"another file").unwrap();
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        let old = open(&fs, b"file", OpenFlags::empty());
        fs.rename_at(&who, &root, b"new", &root, b"file", RenameFlags::empty())
            .unwrap();
        let new = open(&fs, b"file", OpenFlags::empty());
        fs.unlink_at(&who, &root, b"file").unwrap();
        fs.drop_caches().unwrap();
        assert_eq!(read(&fs, &old), b"content", "{coherence:?}");
        assert_eq!(read(&fs, &new), b"another file", "{coherence:?}");
        for file in [&old, &new] {
            assert_eq!(fs.attributes(file.node()).unwrap().nlink, 0);
        }
    }
}

#[test]
fn an_open_directory_that_others_move_or_remove_is_the_same_directory() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("one/moved")).unwrap();
        fs::create_dir_all(at("one/removed")).unwrap();
        fs::write(at("one/moved/file"), b"content").unwrap();
        let fs = over(dir.path(), coherence);
        let (who, flags) = (Caller::root(), OpenFlags::DIRECTORY);
        let moved = open(&fs, b"one/moved", flags);
        let removed = open(&fs, b"one/removed", flags);
        fs::rename(at("one"), at("two")).unwrap();
        fs::create_dir_all(at("one/moved")).unwrap();
        fs::remove_dir(at("two/removed")).unwrap();
        fs.drop_caches().unwrap();
        let list = |open| {
            let mut names = Vec::new();
            let listed = fs.read_dir(open, 0, &mut |entry| {
                names.push(entry.name.to_vec());
                true
            });
            listed.map(|()| names.len())
        };
        assert_eq!(list(&moved), Ok(3), "{coherence:?}");
        let file = fs.lookup(&who, moved.node(), b"file").unwrap();
        let file = fs.open(&who, &file, OpenFlags::empty()).unwrap();
        assert_eq!(read(&fs, &file), b"content");
        let names = list(&removed);
        assert!(
            matches!(names, Ok(0 | 2) | Err(Errno::ENOENT)),
            "{names:?}, {coherence:?}"
        );
        let found = fs.lookup(&who, removed.node(), b"file");
        assert_eq!(found.map(drop), Err(Errno::ENOENT), "{coherence:?}");
        fs.attributes(removed.node()).unwrap();
    }
}

/// Directories that are not open, as the working directory of a program is not, and more than are
/// kept open.
#[test]
fn a_directory_that_others_moved_is_found_by_its_handle() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for number in 0..40 {
        fs::create_dir_all(at(&format!("one/{number}/below"))).unwrap();
        fs::write(at(&format!("one/{number}/below/file")), b"content").unwrap();
    }
    let options = Options {
        coherence: NEVER,
        open: 4,
        ..Options::default()
    };
    let fs = over_with(dir.path(), options);
    let dirs: Vec<_> = (0..40)
        .map(|number| {
            let path = format!("one/{number}/below");
            seen::content(&fs, format!("{path}/file").as_bytes()).unwrap();
            seen::node(&fs, path.as_bytes()).unwrap()
        })
        .collect();
    fs::rename(at("one"), at("two")).unwrap();
    let handles = rustix::process::geteuid().is_root();
    for node in &dirs {
        match fs.attributes(node) {
            Err(Errno::ESTALE) if !handles => continue,
            attr => assert_eq!(attr.unwrap().ino, node.ino()),
        }
        let file = fs.lookup(&Caller::root(), node, b"file").unwrap();
        let file = fs.open(&Caller::root(), &file, OpenFlags::empty()).unwrap();
        assert_eq!(read(&fs, &file), b"content");
    }
}

#[test]
fn a_file_that_can_only_be_appended_to_is_appended_to() {
    for coherence in [NOTIFIED, NEVER, Coherence::Exclusive] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, b"one").unwrap();
        let log = File::open(&path).unwrap();
        let Ok(flags) = rustix::fs::ioctl_getflags(&log) else {
            println!("skipped: append_only: the host has no flags");
            return;
        };
        if rustix::fs::ioctl_setflags(&log, flags | IFlags::APPEND).is_err() {
            println!("skipped: append_only: the host lets nobody set it");
            return;
        }
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        let appends = OpenFlags::READ_WRITE | OpenFlags::APPEND;
        let opened = fs.open_at(&who, &root, b"log", appends, 0);
        let appended = opened.and_then(|file| {
            fs.append(&who, &file, b", two")?;
            Ok(file)
        });
        let writes = fs.open_at(&who, &root, b"log", OpenFlags::WRITE_ONLY, 0);
        rustix::fs::ioctl_setflags(&log, flags).unwrap();
        let file = appended.unwrap();
        assert_eq!(writes.map(drop), Err(Errno::EPERM));
        assert_eq!(read(&fs, &file), b"one, two");
        // It is the same open file, and what is written goes where it is to go.
        if coherence != Coherence::Exclusive {
            fs.drop_caches().unwrap();
            let other = open(&fs, b"log", OpenFlags::READ_WRITE);
            assert_eq!(fs.write(&who, &other, 0, b"ONE"), Ok(3));
            assert_eq!(fs::read(&path).unwrap(), b"ONE, two");
        }
    }
}

#[test]
fn what_several_append_is_whole_and_in_memory_as_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    File::create(&path).unwrap();
    let record = |writer: u8| vec![b'a' + writer; 700 + 100 * usize::from(writer)];
    let (one, other) = (over(dir.path(), NOTIFIED), over(dir.path(), NEVER));
    std::thread::scope(|scope| {
        for (writer, fs) in [(0, &one), (1, &other), (2, &one)] {
            scope.spawn(move || {
                let file = open(fs, b"log", OpenFlags::READ_WRITE | OpenFlags::APPEND);
                for _ in 0..300 {
                    let bytes = record(writer);
                    fs.append(&Caller::root(), &file, &bytes).unwrap();
                    let size = fs.attributes(file.node()).unwrap().size;
                    let mut last = vec![0; 5000];
                    let from = size.saturating_sub(5000);
                    let read = fs.read(&file, from, &mut last).unwrap();
                    assert!(!last[..read].contains(&0), "zeros in place of what came");
                }
            });
        }
    });
    let all = fs::read(&path).unwrap();
    let mut records = 0;
    let mut rest = &all[..];
    while let Some(first) = rest.first() {
        let whole = record(first - b'a');
        assert!(rest.starts_with(&whole), "torn after {records} records");
        rest = &rest[whole.len()..];
        records += 1;
    }
    assert_eq!(records, 900);
    assert_eq!(seen::content(&other, b"log").unwrap(), all);
}

#[test]
fn a_listed_name_whose_number_was_anothers_is_not_taken_for_that_one() {
    let dir = tempfile::tempdir().unwrap();
    let one = |round: usize, name: &str| dir.path().join(format!("one {round}/{name}"));
    let two = |round: usize, name: &str| dir.path().join(format!("two {round}/{name}"));
    for round in 0..20 {
        fs::create_dir(one(round, "")).unwrap();
        fs::create_dir(two(round, "")).unwrap();
        fs::write(one(round, "old"), b"old").unwrap();
    }
    let mut again = 0;
    for round in 0..20 {
        // What was told holds for long, and names are read when they are listed.
        let fs = over(dir.path(), Coherence::For(Duration::from_secs(3600)));
        let (who, root) = (Caller::root(), fs.root());
        let old = format!("one {round}/old").into_bytes();
        let new = format!("two {round}/new").into_bytes();
        assert_eq!(seen::content(&fs, &old).unwrap(), b"old");
        let number = fs::metadata(one(round, "old")).unwrap().ino();
        fs::remove_file(one(round, "old")).unwrap();
        fs::write(one(round, "new"), b"new one").unwrap();
        again += u32::from(fs::metadata(one(round, "new")).unwrap().ino() == number);
        fs::rename(one(round, "new"), two(round, "new")).unwrap();
        let listed = seen::node(&fs, format!("two {round}").as_bytes()).unwrap();
        assert_eq!(seen::names(&fs, &listed).unwrap(), [b"new"]);
        let attr = fs.stat_at(&who, &root, &new, true);
        assert_eq!(attr.unwrap().size, 7, "round {round}");
        assert_eq!(seen::content(&fs, &new).unwrap(), b"new one");
    }
    if again == 0 {
        println!("skipped: number_reuse: the host gives no number again");
    }
}
