//! What a file system shows, beside what the host does.

use holdfast_core::types::{Attr, Caller, FileType, OpenFlags, Result};
use holdfast_core::{FileSystem, Node};
use rustix::buffer::spare_capacity;
use rustix::fs::{lgetxattr, llistxattr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a path leads to, links not followed.
pub(crate) fn node(fs: &FileSystem, path: &[u8]) -> Result<Node> {
    fs.resolve(&Caller::root(), &fs.root(), path, false)
}

/// All bytes of a file.
pub(crate) fn content(fs: &FileSystem, path: &[u8]) -> Result<Vec<u8>> {
    let node = node(fs, path)?;
    let file = fs.open(&Caller::root(), &node, OpenFlags::empty())?;
    let mut content = vec![0; fs.attributes(&node)?.size as usize];
    let read = fs.read(&file, 0, &mut content)?;
    content.truncate(read);
    Ok(content)
}

/// The names of a directory, sorted, without `.` and `..`.
pub(crate) fn names(fs: &FileSystem, dir: &Node) -> Result<Vec<Vec<u8>>> {
    let flags = OpenFlags::DIRECTORY;
    let open = fs.open(&Caller::root(), dir, flags)?;
    let mut names = Vec::new();
    fs.read_dir(&open, 0, &mut |entry| {
        names.push(entry.name.to_vec());
        true
    })?;
    names.retain(|name| name != b"." && name != b"..");
    names.sort();
    Ok(names)
}

/// Compares a directory and all below it.
pub(crate) fn compare(fs: &FileSystem, root: &Path) {
    compare_dir(fs, &fs.root(), root);
}

fn compare_dir(fs: &FileSystem, dir: &Node, host: &Path) {
    let mut expected: Vec<Vec<u8>> = fs::read_dir(host)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
        .collect();
    expected.sort();
    assert_eq!(names(fs, dir).unwrap(), expected, "{host:?}");
    let open = fs.open(&Caller::root(), dir, OpenFlags::DIRECTORY).unwrap();
    let mut listed = Vec::new();
    fs.read_dir_plus(&open, 0, &mut |entry, attr| {
        listed.push((entry.name.to_vec(), *attr.unwrap()));
        true
    })
    .unwrap();
    for (name, attr) in listed {
        if name == b"." || name == b".." {
            continue;
        }
        let path = host.join(std::ffi::OsStr::from_bytes(&name));
        compare_attributes(&attr, &path);
        let node = fs.lookup(&Caller::root(), dir, &name).unwrap();
        compare_one(fs, &node, &path);
    }
}

fn compare_one(fs: &FileSystem, node: &Node, host: &Path) {
    compare_attributes(&fs.attributes(node).unwrap(), host);
    for (name, value) in attributes(host) {
        let shown = fs.getxattr(&Caller::root(), node, &name);
        assert_eq!(shown.as_deref(), Ok(&*value), "{host:?}");
    }
    match node.kind() {
        FileType::Directory => compare_dir(fs, node, host),
        FileType::Symlink => {
            let target = fs::read_link(host).unwrap();
            let shown = fs.readlink(node).unwrap();
            assert_eq!(&*shown, target.as_os_str().as_bytes());
        }
        FileType::Regular => {
            let file = fs.open(&Caller::root(), node, OpenFlags::empty()).unwrap();
            let expected = fs::read(host).unwrap();
            let mut shown = vec![1; expected.len() + 1];
            assert_eq!(fs.read(&file, 0, &mut shown), Ok(expected.len()));
            assert!(shown.starts_with(&expected), "{host:?}");
            compare_attributes(&fs.attributes(node).unwrap(), host);
        }
        _ => {}
    }
}

fn compare_attributes(shown: &Attr, host: &Path) {
    let expected = fs::symlink_metadata(host).unwrap();
    let time = |time: holdfast_core::types::Time| (time.secs(), i64::from(time.subsec_nanos()));
    let mode = u32::from(shown.perm) | (shown.kind as u32) << 12;
    assert_eq!(mode, expected.mode(), "{host:?}");
    assert_eq!(shown.size, expected.size(), "{host:?}");
    assert_eq!(u64::from(shown.nlink), expected.nlink(), "{host:?}");
    assert_eq!((shown.uid, shown.gid), (expected.uid(), expected.gid()));
    assert_eq!(shown.rdev, expected.rdev());
    assert_eq!(time(shown.mtime), (expected.mtime(), expected.mtime_nsec()));
    assert_eq!(time(shown.ctime), (expected.ctime(), expected.ctime_nsec()));
    if shown.kind == FileType::Regular {
        // A host gives and takes space when it likes; but what is sparse is shown so.
        let is_sparse =
            |blocks: u64| expected.size() > 1 << 20 && blocks * 512 < expected.size() / 2;
        if is_sparse(expected.blocks()) {
            assert!(is_sparse(shown.blocks), "{host:?}");
        }
    }
}

/// The attributes that the host has of a file, of those that are shown.
fn attributes(host: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut list = Vec::with_capacity(4096);
    if llistxattr(host, spare_capacity(&mut list)).is_err() {
        return Vec::new();
    }
    let names = list.split(|byte| *byte == 0);
    let users = names.filter(|name| name.starts_with(b"user."));
    let with_value = |name: &[u8]| {
        let mut value = Vec::with_capacity(4096);
        lgetxattr(host, name, spare_capacity(&mut value)).unwrap();
        (name.to_vec(), value)
    };
    users.map(with_value).collect()
}
