//! A whole tree of the host, beside what a file system over it shows: all attributes, extended
//! attributes, targets, contents, hard links, holes.

use crate::{over, over_with, seen};
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, FileType};
use holdfast_hostdir::Options;
use rustix::fs::{CWD, FileType as HostType, Mode, XattrFlags, lsetxattr, mknodat};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

/// A tree with all that a directory of the host can hold without rights.
fn grow(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("a/b/c/d")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("a/file"), b"content").unwrap();
    fs::write(at("a/b/none"), b"").unwrap();
    fs::write(at("a/b/c/d/deep"), vec![7; 300_000]).unwrap();
    fs::hard_link(at("a/file"), at("a/b/c/its other name")).unwrap();
    fs::set_permissions(at("a/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("../file", at("a/b/link")).unwrap();
    symlink("/etc/passwd", at("outside")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let sparse = File::create(at("sparse")).unwrap();
    sparse.write_at(b"begin", 0).unwrap();
    sparse.write_at(b"middle", 3 << 20).unwrap();
    sparse.set_len(9 << 20).unwrap();
    mknodat(
        CWD,
        at("fifo"),
        HostType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // Not on every file system of a host.
    let _ = lsetxattr(at("a/file"), "user.note", b"\0\xff", XattrFlags::empty());
    let _ = lsetxattr(at("a/b"), "user.dir", b"", XattrFlags::empty());
    // A walk that comes by reads the next ones together.
    for number in 0..40 {
        let small = at(&format!("small/{number:02}"));
        fs::create_dir_all(small.join("below")).unwrap();
        for file in 0..number % 5 {
            fs::write(small.join(format!("{file}")), vec![2; 100 * file]).unwrap();
        }
        symlink("0", small.join("link")).unwrap();
        let _ = lsetxattr(&small, "user.number", &[7], XattrFlags::empty());
    }
    fs::create_dir(at("many")).unwrap();
    for number in 0..300 {
        fs::write(at(&format!("many/{number:03}")), vec![1; number]).unwrap();
    }
}

#[test]
fn a_tree_is_shown_as_the_host_has_it() {
    let dir = tempfile::tempdir().unwrap();
    grow(dir.path());
    let fs = over(dir.path(), Coherence::Exclusive);
    for _ in 0..2 {
        seen::compare(&fs, dir.path());
        // All of it comes again, from the places of what is left.
        fs.drop_caches().unwrap();
    }
    assert!(fs.stats().inodes < 100, "{:?}", fs.stats());
}

#[test]
fn hard_links_meet_and_numbers_are_the_hosts() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    grow(dir.path());
    let fs = over(dir.path(), Coherence::Exclusive);
    let one = seen::node(&fs, b"a/file").unwrap();
    let other = seen::node(&fs, b"a/b/c/its other name").unwrap();
    assert_eq!(one, other);
    let host = fs::metadata(dir.path().join("a/file")).unwrap();
    let root = fs::metadata(dir.path()).unwrap();
    if host.dev() == root.dev() {
        assert_eq!(one.ino().0, host.ino());
    }
}

#[test]
fn links_are_never_followed_out_of_it() {
    let dir = tempfile::tempdir().unwrap();
    grow(dir.path());
    let fs = over(dir.path(), Coherence::Exclusive);
    let root = fs.root();
    let who = Caller::root();
    let link = fs.resolve(&who, &root, b"outside", false).unwrap();
    assert_eq!(link.kind(), FileType::Symlink);
    // `/` is the root of the file system.
    let outside = fs.resolve(&who, &root, b"outside", true);
    assert_eq!(outside, Err(Errno::ENOENT));
    let up = fs.resolve(&who, &root, b"../../..", true).unwrap();
    assert_eq!(up, root);
}

#[test]
fn many_more_files_are_read_than_there_are_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let below = dir.path().join(format!("{number}"));
        fs::create_dir(&below).unwrap();
        fs::write(below.join("file"), number.to_string()).unwrap();
    }
    let options = Options {
        open: 16,
        ..Options::default()
    };
    let fs = over_with(dir.path(), options);
    let open = || {
        let links = fs::read_dir("/proc/self/fd").unwrap();
        let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
        targets
            .filter(|target| target.starts_with(dir.path()))
            .count()
    };
    for _ in 0..2 {
        for number in 0..100 {
            let path = format!("{number}/file");
            let content = seen::content(&fs, path.as_bytes());
            assert_eq!(content, Ok(number.to_string().into_bytes()));
            // And the root, twice where files are opened by their handles.
            assert!(open() <= 16 + 4 + 2, "{} descriptors", open());
        }
    }
}
