//! File flags, projects and lazytime, in memory and on a volume: what they refuse, what inherits
//! them, and what survives a remount and a crash.

use crate::stage::{assert_sound, opened};
use std::sync::Arc;

use holdfast_core::{FileSystem, MemoryLimits, MemoryStore, Node, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{
    Caller, Caps, Errno, Fallocate, FileFlags, OpenFlags, RenameFlags, Result, SetAttr, SetTime,
    Time, XattrSet,
};
use holdfast_volume::{FormatOptions, format};

const MIB: u64 = 1 << 20;
const FIRST_OF_2300: i64 = 10_413_792_000;
const NOTHING: SetAttr = SetAttr {
    perm: None,
    uid: None,
    gid: None,
    size: None,
    atime: None,
    mtime: None,
    ctime: None,
};

fn device() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new(64 * MIB));
    let blocks: Arc<dyn BlockDevice> = device.clone();
    format(&blocks, &FormatOptions::default()).unwrap();
    device
}

/// A file system of each store.
fn both(test: impl Fn(&FileSystem)) {
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    test(&FileSystem::new(store, Options::default()).unwrap());
    let device = device();
    let (store, fs) = opened(&(device.clone() as _));
    test(&fs);
    fs.close().unwrap();
    store.close().unwrap();
    assert_sound(&(device.clone() as _));
}

/// The callers that flags must bind: root, and one with permissions checked by a kernel.
fn callers() -> [Caller; 2] {
    let checked = Caller {
        checked: true,
        ..Caller::root()
    };
    [Caller::root(), checked]
}

const CREATE: OpenFlags = OpenFlags::CREATE.union(OpenFlags::READ_WRITE);

fn file(fs: &FileSystem, dir: &Node, name: &str, content: &[u8]) -> Node {
    let who = Caller::root();
    let file = fs
        .create(&who, dir, name.as_bytes(), 0o644, CREATE)
        .unwrap();
    fs.write(&who, &file, 0, content).unwrap();
    file.node().clone()
}

fn set(fs: &FileSystem, node: &Node, flags: FileFlags) {
    fs.set_flags(&Caller::root(), node, Some(flags), None)
        .unwrap();
}

type Outcomes = Vec<(&'static str, Result<()>)>;

fn only(change: impl FnOnce(&mut SetAttr)) -> SetAttr {
    let mut set = NOTHING;
    change(&mut set);
    set
}

/// Every operation that changes a file or its names, and its result.
fn changes(fs: &FileSystem, who: &Caller, node: &Node) -> Outcomes {
    let other = file(fs, &fs.root(), "other", b"1234567890");
    let mut outcomes = changes_of_content(fs, who, node, &other);
    outcomes.extend(changes_of_attributes(fs, who, node));
    outcomes.extend(changes_of_names(fs, who, node));
    outcomes
}

fn changes_of_content(fs: &FileSystem, who: &Caller, node: &Node, other: &Node) -> Outcomes {
    let before = fs.open_unseen(node.clone(), OpenFlags::READ_WRITE).unwrap();
    let source = fs.open(who, other, OpenFlags::READ_WRITE).unwrap();
    let open = |flags| fs.open(who, node, OpenFlags::READ_WRITE | flags).map(drop);
    let space = |mode| fs.fallocate(who, &before, Fallocate::KEEP_SIZE | mode, 0, 4096);
    let cut = |size| only(|set| set.size = Some(size));
    let copied = fs.copy_file_range(who, &source, 0, &before, 0, 5);
    let ftruncated = fs.setattr(who, node, &cut(1), Some(&before));
    vec![
        ("write", fs.write(who, &before, 0, b"x").map(drop)),
        ("append", fs.append(who, &before, b"x").map(drop)),
        ("copy", copied.map(drop)),
        ("open to write", open(OpenFlags::empty())),
        ("open to append", open(OpenFlags::APPEND)),
        (
            "open to truncate",
            open(OpenFlags::TRUNCATE | OpenFlags::APPEND),
        ),
        ("truncate", fs.setattr(who, node, &cut(0), None).map(drop)),
        ("ftruncate", ftruncated.map(drop)),
        ("allocate", space(Fallocate::empty())),
        ("punch", space(Fallocate::PUNCH_HOLE)),
    ]
}

fn changes_of_attributes(fs: &FileSystem, who: &Caller, node: &Node) -> Outcomes {
    let attr = |set| fs.setattr(who, node, &set, None).map(drop);
    let now = Some(SetTime::Now);
    let at = Some(SetTime::At(Time::new(5, 5)));
    let xattr = fs.setxattr(who, node, b"trusted.a", b"1", XattrSet::Any);
    vec![
        ("chmod", attr(only(|set| set.perm = Some(0o600)))),
        ("chown", attr(only(|set| set.uid = Some(0)))),
        ("utimes", attr(only(|set| set.mtime = at))),
        (
            "touch",
            attr(only(|set| (set.atime, set.mtime) = (now, now))),
        ),
        ("setxattr", xattr),
        ("removexattr", fs.removexattr(who, node, b"user.kept")),
        ("drop privileges", fs.drop_privileges(node)),
    ]
}

fn changes_of_names(fs: &FileSystem, who: &Caller, node: &Node) -> Outcomes {
    let root = fs.root();
    let rename = |from: &[u8], to: &[u8], flags| fs.rename(who, &root, from, &root, to, flags);
    vec![
        ("link", fs.link(who, node, &root, b"another")),
        ("rename", rename(b"file", b"moved", RenameFlags::empty())),
        (
            "rename over",
            rename(b"other", b"file", RenameFlags::empty()),
        ),
        ("exchange", rename(b"other", b"file", RenameFlags::EXCHANGE)),
        ("unlink", fs.unlink(who, &root, b"file")),
    ]
}

fn refused(flags: FileFlags, allowed: &[&str]) {
    both(|fs| {
        for who in callers() {
            let node = file(fs, &fs.root(), "file", b"0123456789");
            let kept = fs.setxattr(&who, &node, b"user.kept", b"1", XattrSet::Any);
            kept.unwrap();
            set(fs, &node, flags);
            for (change, outcome) in changes(fs, &who, &node) {
                let expected = match allowed.contains(&change) {
                    true => Ok(()),
                    false => Err(Errno::EPERM),
                };
                assert_eq!(outcome, expected, "{change}, {flags:?}, {}", who.checked);
            }
            let file = fs.open(&who, &node, OpenFlags::empty()).unwrap();
            let mut bytes = [0; 10];
            assert_eq!(fs.read(&file, 0, &mut bytes), Ok(10));
            assert_eq!(&bytes, b"0123456789");
            set(fs, &node, FileFlags::empty());
            for name in ["file", "other"] {
                fs.unlink(&who, &fs.root(), name.as_bytes()).unwrap();
            }
        }
    });
}

#[test]
fn nothing_of_an_immutable_file_changes() {
    refused(FileFlags::IMMUTABLE, &[]);
    refused(FileFlags::IMMUTABLE | FileFlags::APPEND, &[]);
}

#[test]
fn a_file_that_is_only_appended_to_grows_and_that_is_all() {
    let grows = [
        "append",
        "open to append",
        "allocate",
        "touch",
        "drop privileges",
    ];
    refused(FileFlags::APPEND, &grows);
}

#[test]
fn names_of_protected_directories_stay() {
    both(|fs| {
        for who in callers() {
            let root = fs.root();
            let dir = fs.mkdir(&who, &root, b"dir", 0o755).unwrap();
            file(fs, &dir, "old", b"");
            file(fs, &root, "outside", b"");
            let steps = |fs: &FileSystem| {
                let tmp = OpenFlags::READ_WRITE | OpenFlags::TMPFILE;
                let rename = |from: &Node, name: &[u8], to: &Node, new: &[u8]| {
                    fs.rename(&who, from, name, to, new, RenameFlags::empty())
                };
                [
                    fs.mkdir(&who, &dir, b"new", 0o755).map(drop),
                    fs.create(&who, &dir, b"file", 0o644, CREATE).map(drop),
                    fs.tmpfile(&who, &dir, 0o644, tmp).map(drop),
                    fs.symlink(&who, &dir, b"link", b"old").map(drop),
                    rename(&root, b"outside", &dir, b"inside"),
                    fs.unlink(&who, &dir, b"old"),
                    rename(&dir, b"old", &dir, b"renamed"),
                    rename(&dir, b"old", &root, b"outside"),
                    fs.rmdir(&who, &root, b"dir"),
                ]
            };
            set(fs, &dir, FileFlags::IMMUTABLE);
            assert_eq!(steps(fs), [Err(Errno::EPERM); 9]);
            set(fs, &dir, FileFlags::APPEND);
            let [ok, no] = [Ok(()), Err(Errno::EPERM)];
            assert_eq!(steps(fs), [ok, ok, ok, ok, ok, no, no, no, no]);
            set(fs, &dir, FileFlags::empty());
            for name in ["file", "link", "inside", "old"] {
                fs.unlink(&who, &dir, name.as_bytes()).unwrap();
            }
            fs.rmdir(&who, &dir, b"new").unwrap();
            fs.rmdir(&who, &root, b"dir").unwrap();
        }
    });
}

#[test]
fn flags_are_set_by_owners_and_the_strong_ones_by_those_with_the_capability() {
    both(|fs| {
        let (root, node) = (Caller::root(), file(fs, &fs.root(), "file", b"x"));
        let owner = Caller::user(7, 7);
        let chown = SetAttr {
            uid: Some(7),
            gid: Some(7),
            ..NOTHING
        };
        fs.setattr(&root, &node, &chown, None).unwrap();
        let set = |who: &Caller, flags: FileFlags| fs.set_flags(who, &node, Some(flags), None);
        assert_eq!(set(&owner, FileFlags::NODUMP), Ok(()));
        assert_eq!(set(&owner, FileFlags::IMMUTABLE), Err(Errno::EPERM));
        assert_eq!(
            set(&Caller::user(8, 8), FileFlags::empty()),
            Err(Errno::EPERM)
        );
        let capable = Caller {
            caps: Caps::LINUX_IMMUTABLE,
            ..owner.clone()
        };
        assert_eq!(set(&capable, FileFlags::IMMUTABLE), Ok(()));
        assert_eq!(set(&owner, FileFlags::empty()), Err(Errno::EPERM));
        assert_eq!(
            set(&owner, FileFlags::IMMUTABLE | FileFlags::NOATIME),
            Ok(())
        );
        assert_eq!(
            set(&root, FileFlags::from_bits_retain(1)),
            Err(Errno::EOPNOTSUPP)
        );
        let inherit = FileFlags::PROJECT_INHERIT;
        assert_eq!(set(&root, inherit), Err(Errno::EOPNOTSUPP), "of a file");
        let before = fs.getattr(&node).ctime;
        assert_eq!(set(&root, FileFlags::NOATIME), Ok(()));
        assert!(fs.getattr(&node).ctime > before);
        assert_eq!(fs.flags(&node), FileFlags::NOATIME);
    });
}

#[test]
fn reading_leaves_the_access_time_of_a_file_that_says_so() {
    both(|fs| {
        let (who, node) = (Caller::root(), file(fs, &fs.root(), "file", b"x"));
        let old = SetAttr {
            atime: Some(SetTime::At(Time::new(5, 0))),
            ..NOTHING
        };
        for (flags, moves) in [(FileFlags::NOATIME, false), (FileFlags::empty(), true)] {
            set(fs, &node, flags);
            fs.setattr(&who, &node, &old, None).unwrap();
            let file = fs.open(&who, &node, OpenFlags::empty()).unwrap();
            fs.read(&file, 0, &mut [0; 1]).unwrap();
            assert_eq!(
                fs.getattr(&node).atime != Time::new(5, 0),
                moves,
                "{flags:?}"
            );
        }
    });
}

#[test]
fn what_is_made_in_a_directory_has_its_flags_and_project() {
    both(|fs| {
        let (who, root) = (Caller::root(), fs.root());
        let dir = fs.mkdir(&who, &root, b"dir", 0o755).unwrap();
        let all = FileFlags::NODUMP | FileFlags::NOATIME | FileFlags::PROJECT_INHERIT;
        fs.set_flags(&who, &dir, Some(all), Some(42)).unwrap();
        let child = fs.mkdir(&who, &dir, b"child", 0o755).unwrap();
        let made = file(fs, &child, "file", b"x");
        let link = fs.symlink(&who, &child, b"link", b"file").unwrap();
        let below = FileFlags::NODUMP | FileFlags::NOATIME;
        for (node, flags) in [(&child, all), (&made, below), (&link, below)] {
            assert_eq!((fs.flags(node), fs.project(node)), (flags, 42));
        }
        set(fs, &dir, FileFlags::APPEND);
        let plain = fs.mkdir(&who, &dir, b"plain", 0o755).unwrap();
        assert_eq!(
            (fs.flags(&plain), fs.project(&plain)),
            (FileFlags::empty(), 0)
        );
        // Files of another project stay out.
        let other = file(fs, &root, "other", b"x");
        let rename = |from: &Node, name: &[u8], to: &Node, new: &[u8], flags| {
            fs.rename(&who, from, name, to, new, flags)
        };
        let none = RenameFlags::empty();
        assert_eq!(fs.link(&who, &other, &child, b"other"), Err(Errno::EXDEV));
        assert_eq!(
            rename(&root, b"other", &child, b"other", none),
            Err(Errno::EXDEV)
        );
        let exchange = RenameFlags::EXCHANGE;
        assert_eq!(
            rename(&child, b"file", &root, b"other", exchange),
            Err(Errno::EXDEV)
        );
        fs.set_flags(&who, &other, None, Some(42)).unwrap();
        assert_eq!(rename(&root, b"other", &child, b"other", none), Ok(()));
        assert_eq!(rename(&child, b"other", &root, b"out", none), Ok(()));
    });
}

/// Files with flags, projects and lazytime.
fn fill(fs: &FileSystem) {
    let (who, root) = (Caller::root(), fs.root());
    let dir = fs.mkdir(&who, &root, b"dir", 0o755).unwrap();
    fs.set_flags(&who, &dir, Some(FileFlags::PROJECT_INHERIT), Some(u32::MAX))
        .unwrap();
    for (name, seconds) in [("a", FIRST_OF_2300), ("b", i64::MAX), ("c", 5)] {
        let node = file(fs, &dir, name, name.as_bytes());
        let at = |nanos| Some(SetTime::At(Time::new(seconds, nanos)));
        let times = SetAttr {
            atime: at(1),
            mtime: at(2),
            ..NOTHING
        };
        fs.setattr(&who, &node, &times, None).unwrap();
        let flags = FileFlags::IMMUTABLE | FileFlags::NODUMP;
        fs.set_flags(&who, &node, Some(flags), None).unwrap();
    }
}

fn assert_filled(fs: &FileSystem) {
    let (who, root) = (Caller::root(), fs.root());
    let dir = fs.lookup(&who, &root, b"dir").unwrap();
    assert_eq!(fs.project(&dir), u32::MAX);
    assert_eq!(fs.flags(&dir), FileFlags::PROJECT_INHERIT);
    for (name, seconds) in [(b"a", FIRST_OF_2300), (b"b", i64::MAX), (b"c", 5)] {
        let node = fs.lookup(&who, &dir, name).unwrap();
        let attr = fs.getattr(&node);
        assert_eq!(attr.atime, Time::new(seconds, 1));
        assert_eq!(attr.mtime, Time::new(seconds, 2));
        assert_eq!(fs.flags(&node), FileFlags::IMMUTABLE | FileFlags::NODUMP);
        assert_eq!(fs.project(&node), u32::MAX);
        assert_eq!(fs.unlink(&who, &dir, name), Err(Errno::EPERM));
    }
}

#[test]
fn flags_projects_and_late_times_are_there_after_a_remount_and_after_a_crash() {
    let device = device();
    let (store, fs) = opened(&(device.clone() as _));
    fill(&fs);
    assert_filled(&fs);
    fs.sync().unwrap();
    // From the journal alone.
    let crashed = Arc::new(MemoryDevice::from_image("crashed", device.image()));
    fs.close().unwrap();
    store.close().unwrap();
    for device in [crashed, device] {
        for _ in 0..2 {
            assert_sound(&(device.clone() as _));
            let (store, fs) = opened(&(device.clone() as _));
            assert_filled(&fs);
            fs.close().unwrap();
            store.close().unwrap();
        }
    }
}
