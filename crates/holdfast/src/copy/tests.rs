use super::*;
use crate::types::{Caller, SetAttr, SetTime, Time};
use crate::{FileSystem, NodeKind, Permissions, XattrSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

/// A file system in memory for the superuser, by any user that runs the tests.
pub(crate) fn superuser() -> FileSystem {
    FileSystem::builder().caller(Caller::root()).build()
}

const BIG: u64 = 40 << 20;

/// A hash of the content.
fn short(content: &[u8]) -> Vec<u8> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish().to_le_bytes().to_vec()
}

/// All attributes that a copy keeps, one line for each name.
pub(crate) fn told(fs: &FileSystem, dir: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut paths = vec![PathBuf::from(dir)];
    while let Some(path) = paths.pop() {
        let meta = fs.symlink_metadata(&path).unwrap();
        let attr = meta.attr();
        let content = match attr.kind {
            NodeKind::Regular if meta.len() < BIG => short(&fs.read(&path).unwrap()),
            NodeKind::Symlink => fs
                .read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes(),
            _ => Vec::new(),
        };
        let xattrs = if attr.kind == NodeKind::Symlink {
            Vec::new()
        } else {
            let names = fs.list_xattr(&path).unwrap();
            let value = |name| fs.get_xattr(&path, &name).unwrap();
            names
                .into_iter()
                .map(|name| (name.clone(), value(name)))
                .collect()
        };
        lines.push(format!(
            "{:?} {:o} {}:{} {:?} {} {} {:?} {:?} {content:?} {xattrs:?}",
            path.strip_prefix(dir).unwrap(),
            attr.mode(),
            attr.uid,
            attr.gid,
            attr.rdev,
            if meta.is_dir() { 0 } else { attr.nlink },
            if meta.is_dir() { 0 } else { attr.size },
            attr.mtime,
            // Reading through another name, or listing a directory, changes the access time.
            if meta.is_file() && meta.nlink() == 1 {
                attr.atime
            } else {
                Time(0)
            },
        ));
        if meta.is_dir() {
            let entries = fs.read_dir(&path).unwrap();
            paths.extend(entries.map(|entry| path.join(entry.unwrap().file_name())));
        }
    }
    lines.sort();
    lines
}

fn stamp(fs: &FileSystem, path: &str, mtime: i64) {
    let node = fs
        .open_dir("/")
        .unwrap()
        .resolve(Path::new(path), false)
        .unwrap();
    let times = SetAttr {
        atime: Some(SetTime::At(Time(mtime - 7))),
        mtime: Some(SetTime::At(Time(mtime))),
        ..SetAttr::default()
    };
    fs.core()
        .setattr(&Caller::root(), &node, &times, None)
        .unwrap();
}

/// A tree with files of every type.
pub(crate) fn sample() -> FileSystem {
    let fs = FileSystem::builder().options(crate::Options {
        atime: crate::AtimePolicy::None,
        ..crate::Options::default()
    });
    let fs = fs.caller(Caller::root()).build();
    fs.create_dir_all("/tree/dir/deeper").unwrap();
    fs.create_dir("/tree/empty").unwrap();
    fs.write("/tree/dir/file", vec![7; 3 << 20]).unwrap();
    fs.write("/tree/void", "").unwrap();
    fs.hard_link("/tree/void", "/tree/dir/deeper/void too")
        .unwrap();
    fs.hard_link("/tree/void", "/tree/empty/again").unwrap();
    fs.symlink("../nowhere", "/tree/dir/link").unwrap();
    fs.mkfifo("/tree/pipe", 0o640).unwrap();
    let sparse = fs.create("/tree/sparse").unwrap();
    sparse.write_all_at(b"begin", 0).unwrap();
    sparse.write_all_at(b"middle", BIG / 2).unwrap();
    sparse.set_len(BIG).unwrap();
    fs.write("/tree/odd \n\u{fffd}", "name").unwrap();
    fs.write("/tree/tool", "x").unwrap();
    fs.chown("/tree/tool", Some(1000), Some(1001)).unwrap();
    fs.set_permissions("/tree/tool", Permissions::from_mode(0o6755))
        .unwrap();
    fs.set_xattr("/tree/tool", "user.a", [0, 1, 255], XattrSet::Any)
        .unwrap();
    fs.set_xattr("/tree/dir", "user.b", "", XattrSet::Any)
        .unwrap();
    fs.set_permissions("/tree/dir", Permissions::from_mode(0o2551))
        .unwrap();
    for (path, time) in [
        ("/tree/dir/file", 1_234_567_890_123_456_789),
        ("/tree/dir/link", -5_000_000_001),
        ("/tree/tool", 1),
        ("/tree/void", 999_999_999),
        ("/tree/sparse", 1 << 55),
        ("/tree/dir", 77_000_000_007),
        ("/tree/empty", 5),
        ("/tree", 3_000_000_000),
    ] {
        stamp(&fs, path, time);
    }
    fs
}

fn no_word(event: CopyEvent<'_>) {
    assert!(matches!(event, CopyEvent::Progress(_)), "{event:?}");
}

#[test]
fn a_copy_of_a_copy_is_the_same_in_all_that_can_be_kept() {
    let fs = sample();
    let other = superuser();
    let plain = CopyOptions::default();
    let copied = fs
        .copy_across("/tree", &other, "/new", &plain, &mut no_word)
        .unwrap();
    assert_eq!(told(&other, "/new"), told(&fs, "/tree"));
    let (dirs, files) = (copied.directories, copied.files);
    assert_eq!((dirs, files, copied.links), (4, 5, 2));
    assert_eq!((copied.symlinks, copied.special, copied.failed), (1, 1, 0));
    assert_eq!(copied.lost, Losses::default());
    assert_eq!(copied.names(), 13);
    let sparse = other.open("/new/sparse").unwrap();
    assert!(
        sparse.metadata().unwrap().blocks() < 100,
        "holes stay holes"
    );
    let void = other.metadata("/new/void").unwrap();
    assert_eq!(
        void.ino(),
        other.metadata("/new/empty/again").unwrap().ino()
    );
}

#[test]
fn what_went_out_to_the_host_and_in_again_is_the_same() {
    if !rustix::process::geteuid().is_root() {
        return holdfast_testkit::skip::skipped("owners take root");
    }
    let fs = sample();
    let host = tempfile::tempdir_in("/var/tmp").unwrap();
    let out = host.path().join("out");
    let plain = CopyOptions::default();
    let copied = fs.copy_out("/tree", &out, &plain, &mut no_word).unwrap();
    assert_eq!((copied.failed, &copied.lost), (0, &Losses::default()));
    let meta = fs::metadata(out.join("tool")).unwrap();
    assert_eq!(
        (meta.mode() & 0o7777, meta.uid(), meta.mtime_nsec()),
        (0o6755, 1000, 1)
    );
    assert!(fs::metadata(out.join("sparse")).unwrap().blocks() * 512 < BIG / 2);
    let again = superuser();
    again.copy_in(&out, "/in", &plain, &mut no_word).unwrap();
    assert_eq!(told(&again, "/in"), told(&fs, "/tree"));
}

#[test]
fn directories_are_merged_and_other_names_replaced() {
    let fs = superuser();
    fs.create_dir_all("/from/dir").unwrap();
    fs.write("/from/dir/both", "new").unwrap();
    fs.symlink("new", "/from/link").unwrap();
    fs.create_dir_all("/to/dir").unwrap();
    fs.write("/to/dir/both", "old, and longer").unwrap();
    fs.write("/to/dir/kept", "kept").unwrap();
    fs.write("/to/link", "no link").unwrap();
    let plain = CopyOptions::default();
    fs.copy_across("/from", &fs, "/to", &plain, &mut no_word)
        .unwrap();
    assert_eq!(fs.read("/to/dir/both").unwrap(), b"new");
    assert_eq!(fs.read("/to/dir/kept").unwrap(), b"kept");
    assert_eq!(fs.read_link("/to/link").unwrap(), Path::new("new"));
}

#[test]
fn a_name_in_the_way_fails_alone_and_is_named() {
    let fs = superuser();
    fs.create_dir_all("/from/x").unwrap();
    fs.write("/from/y", "y").unwrap();
    fs.write("/from/z", "z").unwrap();
    fs.create_dir_all("/to/y").unwrap();
    fs.write("/to/x", "no directory").unwrap();
    let mut failed = Vec::new();
    let plain = CopyOptions::default();
    let copied = fs.copy_across("/from", &fs, "/to", &plain, &mut |event| {
        if let CopyEvent::Failed(error) = event {
            failed.push((error.path.clone(), error.side));
        }
    });
    let copied = copied.unwrap();
    failed.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        failed,
        [("/to/x".into(), Side::To), ("/to/y".into(), Side::To)]
    );
    assert_eq!((copied.failed, copied.files), (2, 1));
    assert_eq!(fs.read("/to/z").unwrap(), b"z");
}

#[test]
fn a_tree_is_not_copied_into_itself_for_ever() {
    let fs = superuser();
    fs.create_dir_all("/a/b").unwrap();
    fs.write("/a/file", "x").unwrap();
    let plain = CopyOptions::default();
    let mut failed = 0;
    let copied = fs.copy_across("/a", &fs, "/a/b/c", &plain, &mut |event| {
        failed += u64::from(matches!(event, CopyEvent::Failed(_)));
    });
    assert_eq!((copied.unwrap().failed, failed), (1, 1));
    assert_eq!(fs.read("/a/b/c/file").unwrap(), b"x");
    assert!(!fs.exists("/a/b/c/b/c"));
}

#[test]
fn no_space_ends_a_copy_and_names_where() {
    let fs = superuser();
    fs.create_dir("/from").unwrap();
    for number in 0..9 {
        fs.write(format!("/from/{number}"), [1; 8192]).unwrap();
    }
    let small = FileSystem::builder()
        .bytes_max(40_960)
        .caller(Caller::root())
        .build();
    let plain = CopyOptions::default();
    let error = fs
        .copy_across("/from", &small, "/to", &plain, &mut no_word)
        .unwrap_err();
    assert_eq!(error.side, Side::To);
    assert_eq!(error.error.kind(), io::ErrorKind::StorageFull);
    assert!(error.path.starts_with("/to/"), "{error}");
}

#[test]
fn single_files_links_and_whole_file_systems_are_copied_as_well() {
    let host = tempfile::tempdir().unwrap();
    fs::write(host.path().join("file"), "content").unwrap();
    fs::set_permissions(host.path().join("file"), fs::Permissions::from_mode(0o604)).unwrap();
    symlink("file", host.path().join("link")).unwrap();
    let fs = superuser();
    let plain = CopyOptions::default();
    let from = |name: &str| host.path().join(name);
    fs.copy_in(from("file"), "/one", &plain, &mut no_word)
        .unwrap();
    fs.copy_in(from("link"), "/two", &plain, &mut no_word)
        .unwrap();
    assert_eq!(fs.metadata("/one").unwrap().mode() & 0o7777, 0o604);
    assert_eq!(fs.read_link("/two").unwrap(), Path::new("file"));
    fs.copy_in(host.path(), "/", &plain, &mut no_word).unwrap();
    assert_eq!(fs.read("/file").unwrap(), b"content");
    assert_eq!(fs.read("/one").unwrap(), b"content", "what was there stays");
    let skip = fs::metadata(from("file")).unwrap();
    let options = CopyOptions {
        skip: Some((skip.dev(), skip.ino())),
        ..CopyOptions::default()
    };
    let mut skipped = 0;
    let copied = fs.copy_in(host.path(), "/less", &options, &mut |event| {
        skipped += u64::from(matches!(event, CopyEvent::Skipped(_)));
    });
    assert_eq!((copied.unwrap().files, skipped), (0, 1));
    let error = fs
        .copy_in(from("none"), "/none", &plain, &mut no_word)
        .unwrap_err();
    assert_eq!((error.side, error.path), (Side::From, from("none")));
    let error = fs
        .copy_in(from("file"), "/no/where", &plain, &mut no_word)
        .unwrap_err();
    assert_eq!((error.side, error.path), (Side::To, "/no/where".into()));
}

#[test]
fn what_a_caller_may_not_keep_is_counted() {
    let fs = sample();
    let other = superuser();
    other.create_dir("/home").unwrap();
    other.chown("/home", Some(7), Some(7)).unwrap();
    let user = other.as_user(Caller::user(7, 7));
    let plain = CopyOptions::default();
    let copied = fs
        .copy_across("/tree", &user, "/home/tree", &plain, &mut no_word)
        .unwrap();
    assert_eq!(copied.failed, 0);
    // Eleven inodes: nothing belongs to this user.
    assert_eq!(copied.lost.owners.0, 11);
    let tool = other.metadata("/home/tree/tool").unwrap();
    assert_eq!(
        (tool.uid(), tool.mode() & 0o7777),
        (7, 0o755),
        "and lends no privileges"
    );
}

#[test]
fn a_file_that_is_cut_off_meanwhile_is_told() {
    for sparse in [false, true] {
        let host = tempfile::tempdir().unwrap();
        let path = host.path().join("file");
        fs::write(&path, vec![7; 3 << 20]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        if sparse {
            file.set_len(9 << 20).unwrap();
        }
        let mut told = Vec::new();
        let watch = &mut |event: CopyEvent<'_>| match event {
            CopyEvent::Progress(copied) if copied.bytes == 1 << 20 => {
                file.set_len(1 << 20).unwrap();
            }
            CopyEvent::Failed(failed) => told.push(failed.error.to_string()),
            _ => {}
        };
        let copy = superuser();
        let copied = copy.copy_in(host.path(), "/copy", &CopyOptions::default(), watch);
        assert_eq!(copied.unwrap().failed, 1);
        assert_eq!(told, ["became shorter while it was copied"]);
    }
}
