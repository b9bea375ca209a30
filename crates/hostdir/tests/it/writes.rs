//! What a file system changes over a directory of the host: it is on the host at once, and seen at
//! once.

use crate::{NEVER, NOTIFIED, over, seen};
use holdfast_core::store::Coherence;
use holdfast_core::types::{
    Caller, Errno, Fallocate, FileFlags, OpenFlags, RenameFlags, SetAttr, SetTime, Time, Whence,
    XattrSet,
};
use holdfast_core::{FileSystem, OpenFile};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

const ALL: [Coherence; 4] = [
    Coherence::Exclusive,
    Coherence::For(Duration::from_secs(60)),
    NEVER,
    NOTIFIED,
];

fn open(fs: &FileSystem, path: &[u8], flags: OpenFlags) -> OpenFile {
    fs.open_at(&Caller::root(), &fs.root(), path, flags, 0o644)
        .unwrap()
}

fn created(fs: &FileSystem, path: &[u8]) -> OpenFile {
    open(fs, path, OpenFlags::CREATE | OpenFlags::READ_WRITE)
}

#[test]
fn attributes_are_set_on_the_host() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let fs = over(dir.path(), coherence);
        let who = Caller::root();
        let file = created(&fs, b"file");
        let node = file.node();
        let set = SetAttr {
            perm: Some(0o640),
            mtime: Some(SetTime::At(Time::new(1_000_000_000, 5))),
            ..SetAttr::default()
        };
        let attr = fs.setattr(&who, node, &set, None).unwrap();
        let host = fs::metadata(&path).unwrap();
        assert_eq!(
            (attr.perm, u32::from(attr.perm)),
            (0o640, host.mode() & 0o7777)
        );
        assert_eq!((host.mtime(), host.mtime_nsec()), (1_000_000_000, 5));
        assert_eq!(attr.mtime, Time::new(1_000_000_000, 5));
        let name = b"user.note";
        match fs.setxattr(&who, node, name, b"value", XattrSet::Create) {
            // Not every file system of a host has any.
            Err(Errno::EOPNOTSUPP) => {}
            set => {
                set.unwrap();
                let again = fs.setxattr(&who, node, name, b"", XattrSet::Create);
                assert_eq!(again, Err(Errno::EEXIST));
                assert_eq!(fs.getxattr(&who, node, name), Ok((*b"value").into()));
                seen::compare(&fs, dir.path());
                fs.removexattr(&who, node, name).unwrap();
                assert_eq!(fs.getxattr(&who, node, name), Err(Errno::ENODATA));
                let gone = fs.removexattr(&who, node, name);
                assert_eq!(gone, Err(Errno::ENODATA));
            }
        }
        seen::compare(&fs, dir.path());
    }
}

#[test]
fn what_has_no_name_any_more_is_read_and_written_and_then_gone() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        let file = created(&fs, b"file");
        fs.write(&who, &file, 0, b"content").unwrap();
        let reader = open(&fs, b"file", OpenFlags::empty());
        let below = fs.mkdir_at(&who, &root, b"dir", 0o755).unwrap();
        fs.unlink_at(&who, &root, b"file").unwrap();
        fs.rmdir_at(&who, &root, b"dir").unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(fs.write(&who, &file, 7, b" goes on"), Ok(8));
        let mut read = [0; 20];
        assert_eq!(fs.read(&reader, 0, &mut read), Ok(15));
        assert_eq!(&read[..15], b"content goes on");
        let attr = fs.attributes(file.node()).unwrap();
        assert_eq!((attr.nlink, attr.size), (0, 15));
        assert_eq!(fs.attributes(&below).unwrap().nlink, 0);
        let made = fs.mkdir(&who, &below, b"in it", 0o755).map(drop);
        assert_eq!(made, Err(Errno::ENOENT));
        let mode = SetAttr {
            perm: Some(0o600),
            ..SetAttr::default()
        };
        assert_eq!(
            fs.setattr(&who, file.node(), &mode, None).unwrap().perm,
            0o600
        );
        drop((file, below));
        // What was read from memory alone is still open.
        assert_eq!(fs.read(&reader, 0, &mut read), Ok(15));
        drop(reader);
        let own = dir.path().to_string_lossy().into_owned();
        let is_gone = |target: String| target.starts_with(&own) && target.contains("(deleted)");
        let is_closed = || !descriptors().any(is_gone);
        for _ in 0..200 {
            if is_closed() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_closed(), "its space is the host's again");
    }
}

fn descriptors() -> impl Iterator<Item = String> {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
    targets.map(|target| target.to_string_lossy().into_owned())
}

#[test]
fn a_file_that_nobody_may_write_is_written_by_the_program_that_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let fs = over(dir.path(), NEVER);
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
    let file = fs.open_at(&who, &root, b"object", flags, 0o444).unwrap();
    assert_eq!(fs.write(&who, &file, 0, b"as git does"), Ok(11));
    fs::remove_file(dir.path().join("object")).unwrap();
    assert_eq!(fs.write(&who, &file, 11, b", without a name"), Ok(16));
}

#[test]
fn a_file_without_a_name_gets_one() {
    let dir = tempfile::tempdir().unwrap();
    let fs = over(dir.path(), NEVER);
    let (who, root) = (Caller::root(), fs.root());
    let file = match fs.tmpfile(&who, &root, 0o640, OpenFlags::READ_WRITE) {
        // The host's file system has none.
        Err(Errno::EOPNOTSUPP) => return,
        file => file.unwrap(),
    };
    fs.write(&who, &file, 0, b"content").unwrap();
    assert_eq!(fs.attributes(file.node()).unwrap().nlink, 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fs.link(&who, file.node(), &root, b"named").unwrap();
    assert_eq!(fs::read(dir.path().join("named")).unwrap(), b"content");
    assert_eq!(fs.attributes(file.node()).unwrap().nlink, 1);
    seen::compare(&fs, dir.path());
}

#[test]
fn nothing_is_changed_outside_whatever_takes_the_place_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), b"stays").unwrap();
    let below = dir.path().join("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("file"), b"").unwrap();
    let fs = over(dir.path(), Coherence::For(Duration::from_secs(60)));
    let who = Caller::root();
    let node = seen::node(&fs, b"below").unwrap();
    let file = seen::node(&fs, b"below/file").unwrap();
    fs.drop_caches().unwrap();
    fs::rename(&below, dir.path().join("aside")).unwrap();
    symlink(outside.path(), &below).unwrap();
    // The directory that is held is still open, or is not found by its name any more.
    let _ = fs.mkdir(&who, &node, b"new", 0o755);
    let _ = fs.unlink(&who, &node, b"file");
    let _ = fs.open(&who, &file, OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE);
    assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"stays");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn two_file_systems_that_change_one_directory_in_turn_see_each_others_changes() {
    let dir = tempfile::tempdir().unwrap();
    let sides = [over(dir.path(), NEVER), over(dir.path(), NEVER)];
    let who = Caller::root();
    for round in 0..40_usize {
        let (one, other) = (&sides[round % 2], &sides[(round + 1) % 2]);
        let content = format!("round {round}").into_bytes();
        let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE;
        let file = open(one, b"file", flags);
        one.write(&who, &file, 0, &content).unwrap();
        assert_eq!(seen::content(other, b"file"), Ok(content.clone()));
        let name = format!("{round}").into_bytes();
        other.mkdir_at(&who, &other.root(), &name, 0o755).unwrap();
        assert!(seen::node(one, &name).is_ok());
        let none = RenameFlags::empty();
        let to = format!("moved {round}").into_bytes();
        one.rename_at(&who, &one.root(), &name, &one.root(), &to, none)
            .unwrap();
        assert_eq!(seen::node(other, &name), Err(Errno::ENOENT));
        sides
            .iter()
            .for_each(|side| seen::compare(side, dir.path()));
        if round % 3 == 0 {
            other.rmdir_at(&who, &other.root(), &to).unwrap();
            assert_eq!(seen::node(one, &to), Err(Errno::ENOENT));
        }
    }
}

#[test]
fn what_a_caller_makes_is_the_callers() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root acts as others");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let owned = |path: &Path| {
        let host = fs::symlink_metadata(path).unwrap();
        (host.uid(), host.gid(), host.mode() & 0o7777)
    };
    let chown = |path: &Path, gid| std::os::unix::fs::chown(path, None, Some(gid)).unwrap();
    chown(&shared, 4000);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2777)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let fs = over(dir.path(), NEVER);
    let who = Caller {
        umask: 0o027,
        ..Caller::user(1234, 567)
    };
    let root = fs.root();
    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
    let file = fs.open_at(&who, &root, b"file", flags, 0o666).unwrap();
    assert_eq!(owned(&dir.path().join("file")), (1234, 567, 0o640));
    fs.mkdir_at(&who, &root, b"shared/dir", 0o777).unwrap();
    assert_eq!(owned(&shared.join("dir")), (1234, 4000, 0o2750));
    fs.symlink_at(&who, &root, b"link", b"file").unwrap();
    assert_eq!(owned(&dir.path().join("link")).0, 1234);
    // Of another's file it may change nothing, and the host agrees.
    fs::write(dir.path().join("other"), b"").unwrap();
    let other = seen::node(&fs, b"other").unwrap();
    let mode = SetAttr {
        perm: Some(0o777),
        ..SetAttr::default()
    };
    let refused = fs.setattr(&who, &other, &mode, None).map(drop);
    assert_eq!(refused, Err(Errno::EPERM));
    // What a writer may not keep goes.
    fs::set_permissions(dir.path().join("file"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs.write(&who, &file, 0, b"new").unwrap();
    assert_eq!(owned(&dir.path().join("file")), (1234, 567, 0o755));
    // The thread is itself again.
    drop(created(&fs, b"mine"));
    assert_eq!(owned(&dir.path().join("mine")).0, 0);
}

#[test]
fn file_flags_are_the_hosts() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        drop(created(&fs, b"file"));
        fs.mkdir_at(&who, &root, b"dir", 0o755).unwrap();
        for name in ["file", "dir"] {
            let on_host = fs::File::open(dir.path().join(name)).unwrap();
            let Ok(before) = ioctl_getflags(&on_host) else {
                println!("skipped: file_flags: the host has none");
                return;
            };
            let node = seen::node(&fs, name.as_bytes()).unwrap();
            let set = |flags: FileFlags| fs.set_flags(&who, &node, Some(flags), None);
            let is_so = |bits: IFlags, flags: FileFlags| {
                assert_eq!(ioctl_getflags(&on_host), Ok(before | bits));
                assert_eq!(fs.flags(&node), flags);
            };
            let (append, nodump) = (FileFlags::APPEND, FileFlags::NODUMP);
            set(append | nodump).unwrap();
            is_so(IFlags::APPEND | IFlags::NODUMP, append | nodump);
            let perm = SetAttr {
                perm: Some(0o700),
                ..SetAttr::default()
            };
            let chmod = fs.setattr(&who, &node, &perm, None);
            assert_eq!(chmod.map(drop), Err(Errno::EPERM));
            assert_eq!(
                set(FileFlags::NOATIME),
                Err(Errno::EOPNOTSUPP),
                "it would not be told"
            );
            assert_eq!(
                fs.set_flags(&who, &node, None, Some(7)),
                Err(Errno::EOPNOTSUPP)
            );
            let user = Caller::user(1000, 1000);
            assert_eq!(
                fs.set_flags(&user, &node, Some(nodump), None),
                Err(Errno::EPERM)
            );
            is_so(IFlags::APPEND | IFlags::NODUMP, append | nodump);
            set(FileFlags::empty()).unwrap();
            is_so(IFlags::empty(), FileFlags::empty());
            // Others do it, too.
            ioctl_setflags(&on_host, before | IFlags::IMMUTABLE).unwrap();
            if coherence == NEVER {
                fs.attributes(&node).unwrap();
                is_so(IFlags::IMMUTABLE, FileFlags::IMMUTABLE);
            }
            ioctl_setflags(&on_host, before).unwrap();
        }
    }
}

#[test]
fn space_is_told_of_a_file_that_loses_its_privileges_as_it_grows() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.open_at(&who, &root, b"file", flags, 0o4464).unwrap();
        let owner = SetAttr {
            uid: Some(0),
            gid: Some(1000),
            ..SetAttr::default()
        };
        fs.setattr(&who, file.node(), &owner, None).unwrap();
        let allocate = fs.fallocate(&who, &file, Fallocate::empty(), 70_000, 200);
        if allocate == Err(Errno::EOPNOTSUPP) {
            return;
        }
        allocate.unwrap();
        let blocks = fs.attributes(file.node()).unwrap().blocks;
        let host = fs::metadata(dir.path().join("file")).unwrap();
        assert!(host.blocks() > 0);
        assert_eq!(blocks, host.blocks(), "{coherence:?}");
    }
}

#[test]
fn an_owner_without_capabilities_changes_the_group_or_the_content_of_a_file_that_has_some() {
    // Version 2 of `struct vfs_cap_data`, with `CAP_NET_RAW`.
    let mut value = [0; 20];
    (value[3], value[5]) = (2, 32);
    let name = b"security.capability";
    let owner = |uid, gid| SetAttr {
        uid,
        gid,
        ..SetAttr::default()
    };
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let fs = over(dir.path(), coherence);
        let root = Caller::root();
        let file = created(&fs, b"file");
        let changed = fs.setattr(&root, file.node(), &owner(Some(1000), Some(1000)), None);
        let set = fs.setxattr(&root, file.node(), name, &value, XattrSet::Any);
        // Not root, or a file system without extended attributes.
        if let Err(Errno::EPERM | Errno::EOPNOTSUPP) = changed.and(set) {
            return;
        }
        let has = || fs.getxattr(&root, file.node(), name);
        assert_eq!(has().as_deref(), Ok(&value[..]));
        let user = Caller {
            groups: [1000, 1001].into(),
            ..Caller::user(1000, 1000)
        };
        if coherence == NEVER {
            fs.write(&user, &file, 0, b"new").unwrap();
        } else {
            fs.setattr(&user, file.node(), &owner(None, Some(1001)), None)
                .unwrap();
        }
        assert_eq!(has(), Err(Errno::ENODATA), "{coherence:?}");
    }
}

#[test]
fn space_is_the_hosts_to_tell_also_of_a_file_whose_data_was_looked_for() {
    for coherence in ALL {
        let dir = tempfile::tempdir().unwrap();
        let fs = over(dir.path(), coherence);
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        // Given ahead as a whole; beyond its end; and so large that its pages come one by one.
        for (name, len, mode) in [
            (&b"whole"[..], 100_000, Fallocate::empty()),
            (b"beyond", 100_000, Fallocate::KEEP_SIZE),
            (b"large", 2 << 20, Fallocate::empty()),
        ] {
            let file = fs.open_at(&who, &root, name, flags, 0o644).unwrap();
            if fs.fallocate(&who, &file, mode, 0, len) == Err(Errno::EOPNOTSUPP) {
                return;
            }
            let path = dir.path().join(std::str::from_utf8(name).unwrap());
            let same = |what: &str| {
                let blocks = fs.attributes(file.node()).unwrap().blocks;
                let host = fs::metadata(&path).unwrap().blocks();
                assert_eq!(blocks, host, "{path:?}, {what}, {coherence:?}");
                assert!(host > 0);
            };
            same("given");
            let _ = fs.seek(&file, 0, Whence::Hole);
            same("looked for holes");
            fs.write(&who, &file, 5000, &[7; 3000]).unwrap();
            same("written");
            fs.read(&file, 0, &mut [0; 9000]).unwrap();
            same("read");
            fs.write(&who, &file, 50_000, &[7; 3000]).unwrap();
            same("written again");
            let half = SetAttr {
                size: Some(60_000),
                ..SetAttr::default()
            };
            fs.setattr(&who, file.node(), &half, None).unwrap();
            same("cut");
        }
    }
}
