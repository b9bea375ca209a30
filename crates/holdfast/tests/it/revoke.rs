//! A file system that is taken away from its users, and what walks over its inodes.

use std::io::{Read, Seek, SeekFrom, Write};

use holdfast::types::Errno;
use holdfast::{
    Access, Caller, EventMask, Fallocate, File, FileSystem, FileTimes, InodeWalk, LockKind,
    OpenOptions, Options, Permissions, Visit, XattrSet,
};

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

/// Asserts that nothing is left but the root.
#[track_caller]
fn assert_nothing_held(fs: &FileSystem) {
    let stats = fs.stats();
    assert_eq!((stats.open_files, stats.locks, stats.watches), (0, 0, 0));
    assert_eq!((stats.inodes, stats.names), (1, 0));
    assert_eq!((stats.pages, stats.bytes), (0, 0));
    assert_eq!(fs.inode_census(), FileSystem::memory().inode_census());
}

#[test]
fn ten_opens_one_revocation_and_ten_closes_leave_nothing() {
    let fs = FileSystem::memory();
    fs.create_dir_all("/a/b").unwrap();
    let mut files: Vec<File> = (0..10)
        .map(|number| {
            // Two of one file, one without a name, one deep down.
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
fn every_call_on_an_old_file_fails_and_its_clones_close() {
    let fs = FileSystem::memory();
    let mut file = both(&fs, "/f");
    file.write_all(b"content").unwrap();
    file.lock().unwrap();
    file.lock_range(0..2, LockKind::Write).unwrap();
    let (other, clone) = (both(&fs, "/g"), file.try_clone().unwrap());
    let mut entries = fs.read_dir("/").unwrap();
    fs.revoke().unwrap();
    let (mut one, mut text) = ([0], String::new());
    assert_eio!(
        file.read(&mut one),
        file.read_at(&mut one, 0),
        file.read_at(&mut one, 1 << 40),
        file.read_to_string(&mut text),
        file.write(&one),
        file.write_at(&one, 0),
        file.metadata(),
        file.seek(SeekFrom::End(0)),
        file.set_len(0),
        file.set_permissions(Permissions::from_mode(0o600)),
        file.set_times(FileTimes::now()),
        file.chown(Some(1), None),
        file.sync_all(),
        file.sync_data(),
        file.fallocate(Fallocate::empty(), 0, 1),
        file.punch_hole(0, 1),
        file.seek_data(0),
        file.seek_hole(0),
        file.copy_range_to(0, &other, 0, 1),
        file.get_xattr("user.x"),
        file.set_xattr("user.x", "", XattrSet::Any),
        file.list_xattr(),
        file.remove_xattr("user.x"),
        file.lock_range(.., LockKind::Read),
        file.range_lock_holder(.., LockKind::Read),
        other.lock(),
        entries.next().unwrap(),
    );
    drop((file, other, entries));
    assert_eq!((fs.stats().open_files, fs.stats().locks), (1, 0));
    drop(clone);
    assert_nothing_held(&fs);
}

#[test]
fn every_call_by_path_and_from_directories_fails() {
    let fs = FileSystem::memory();
    fs.create_dir_all("/d/e").unwrap();
    fs.write("/d/f", "content").unwrap();
    fs.symlink("d/f", "/link").unwrap();
    let (dir, user) = (fs.open_dir("/d").unwrap(), Caller::user(7, 7));
    fs.revoke().unwrap();
    assert_eio!(
        dir.dir_metadata(),
        dir.metadata("f"),
        dir.metadata("none"),
        dir.open("f"),
        dir.read_dir("."),
        dir.create("new"),
        dir.remove_file("f"),
        dir.open_dir("e"),
        dir.as_user(user).metadata("f"),
        fs.metadata("/d/f"),
        fs.symlink_metadata("/link"),
        fs.try_exists("/none"),
        fs.read_link("/link"),
        fs.canonicalize("/link"),
        fs.access("/d", Access::READ),
        fs.read("/d/f"),
        fs.write("/new", ""),
        fs.create_dir("/new"),
        fs.create_dir_all("/d/e/f"),
        fs.rename("/d", "/z"),
        fs.hard_link("/d/f", "/g"),
        fs.symlink("a", "/b"),
        fs.remove_dir("/d/e"),
        fs.remove_dir_all("/d"),
        fs.set_permissions("/d", Permissions::from_mode(0)),
        fs.get_xattr("/d", "user.x"),
        fs.space(),
        fs.sync(),
        fs.watch("/d", EventMask::ALL_EVENTS),
    );
    assert!(!fs.exists("/d"));
    drop(dir);
    assert_nothing_held(&fs);
}

#[test]
fn watchers_are_told_that_it_is_over() {
    let fs = FileSystem::memory();
    fs.create_dir("/d").unwrap();
    let watcher = fs.watch("/d", EventMask::CREATE).unwrap();
    fs.write("/d/f", "").unwrap();
    fs.revoke().unwrap();
    let masks: Vec<_> = watcher.into_iter().map(|event| event.mask).collect();
    let end = [EventMask::CREATE, EventMask::UNMOUNT, EventMask::IGNORED];
    assert_eq!(masks, end);
    assert_eq!(fs.stats().watches, 0);
}

#[test]
fn whoever_waits_for_a_lock_is_sent_away() {
    let fs = FileSystem::memory();
    let (holder, waiter) = (both(&fs, "/f"), both(&fs, "/f"));
    holder.lock().unwrap();
    holder.lock_range(.., LockKind::Write).unwrap();
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| waiter.lock());
        let range = scope.spawn(|| waiter.lock_range(5..6, LockKind::Read));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!whole.is_finished() && !range.is_finished());
        fs.revoke().unwrap();
        assert_eio!(whole.join().unwrap(), range.join().unwrap());
    });
    drop((holder, waiter));
    assert_nothing_held(&fs);
}

#[test]
fn only_administrators_take_away_walk_or_drop() {
    let fs = FileSystem::memory();
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
    let fs = FileSystem::builder().options(Options::default()).build();
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
