//! Revoked file systems, and walks over inodes.

use std::io::{Read, Write};

use crate::superuser;
use holdfast::types::Errno;
use holdfast::{Caller, File, FileSystem, InodeWalk, OpenOptions, Visit};

/// Asserts that all of these failed with `EIO`.
macro_rules! assert_eio {
    ($($call:expr),* $(,)?) => {
        $(assert_eq!(failure($call), Some(Errno::EIO), stringify!($call));)*
    };
}

/// The operating system's number of a failure, if it is one.
fn failure<T>(result: std::io::Result<T>) -> Option<Errno> {
    let error = result.err()?;
    Some(Errno::from_raw(
        error.raw_os_error().expect("every error has its number"),
    ))
}

fn both(fs: &FileSystem, path: &str) -> File {
    let mut options = OpenOptions::new();
    fs.open_with(path, options.read(true).write(true).create(true))
        .unwrap()
}

/// Asserts that only the root is left.
#[track_caller]
fn assert_nothing_held(fs: &FileSystem) {
    let stats = fs.stats();
    assert_eq!((stats.open_files, stats.locks, stats.watches), (0, 0, 0));
    assert_eq!((stats.inodes, stats.names), (1, 0));
    assert_eq!((stats.pages, stats.bytes), (0, 0));
    assert_eq!(fs.inode_census(), superuser().inode_census());
}

#[test]
fn ten_opens_one_revocation_and_ten_closes_leave_nothing() {
    let fs = superuser();
    fs.create_dir_all("/a/b").unwrap();
    let mut files: Vec<File> = (0..10)
        .map(|number| {
            // Two handles of one file, one unnamed file, one deep in the tree.
            let path = match number {
                0 | 1 => "/same".to_owned(),
                2 => "/a/b/deep".to_owned(),
                _ => format!("/{number}"),
            };
            let file = both(&fs, &path);
            file.write_all_at(&[number; 9000], 0).unwrap();
            file
        })
        .collect();
    fs.remove_file("/9").unwrap();
    fs.write("/unused", [1; 5000]).unwrap();
    fs.revoke().unwrap();
    assert!(fs.is_revoked());
    let stats = fs.stats();
    assert_eq!(
        (stats.open_files, stats.inodes),
        (10, 10),
        "nine and the root"
    );
    let mut byte = [0];
    for mut file in files.drain(..) {
        assert_eio!(file.read(&mut byte), file.write(&byte), file.metadata());
        let before = fs.stats().open_files;
        drop(file);
        assert_eq!(fs.stats().open_files, before - 1);
    }
    assert_nothing_held(&fs);
    fs.revoke().unwrap();
    assert_nothing_held(&fs);
}

#[test]
fn only_administrators_take_away_walk_or_drop() {
    let fs = superuser();
    let user = fs.as_user(Caller::user(1, 1));
    assert_eq!(failure(user.revoke()), Some(Errno::EPERM));
    assert_eq!(failure(user.drop_caches()), Some(Errno::EPERM));
    let walked = user.walk_inodes(&mut InodeWalk::new(), |_| Ok(Visit::Continue));
    assert_eq!(failure(walked), Some(Errno::EPERM));
    assert!(!fs.is_revoked());
    assert_eq!(fs.drop_caches().unwrap().inodes, 0, "memory keeps all");
}

#[test]
fn a_walk_shows_each_inode_once_and_goes_on_where_it_stopped() {
    let fs = superuser();
    for number in 0..300 {
        fs.write(format!("/{number}"), "").unwrap();
    }
    let (mut walk, mut seen) = (InodeWalk::new(), Vec::new());
    while !walk.is_done() {
        let before = seen.len();
        fs.walk_inodes(&mut walk, |node| {
            seen.push(node.ino());
            let stop = seen.len() == before + 7;
            Ok(if stop { Visit::Stop } else { Visit::Continue })
        })
        .unwrap();
    }
    assert_eq!(seen.len(), 301);
    assert!(seen.is_sorted_by(|one, two| one < two));
    let shares = fs.inode_walks(3).into_iter().map(|mut walk| {
        let mut count = 0;
        fs.walk_inodes(&mut walk, |_| {
            count += 1;
            Ok(Visit::Continue)
        })
        .unwrap();
        count
    });
    assert_eq!(shares.sum::<usize>(), 301);
    let failed = fs.walk_inodes(&mut InodeWalk::new(), |_| Err(std::io::Error::other("no")));
    assert_eq!(
        failed.unwrap_err().to_string(),
        "no",
        "the error is kept whole"
    );
    assert_eq!(fs.inode_census().used, 1);
}
