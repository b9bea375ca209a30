//! Features of open files beyond std::fs: holes, ranges, locks, extended attributes, watches.

use std::fs::TryLockError;
use std::io::{IoSlice, IoSliceMut, Seek, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::superuser;
use holdfast::types::Errno;
use holdfast::{
    Caller, Cancel, EventMask, Fallocate, File, FileSystem, LockKind, OpenOptions, Permissions,
    XattrSet,
};

/// Long enough for another thread to fail.
const MOMENT: Duration = Duration::from_millis(50);
/// Long enough for any machine.
const AGES: Duration = Duration::from_secs(30);

fn both(fs: &FileSystem, path: &str) -> File {
    let mut options = OpenOptions::new();
    fs.open_with(path, options.read(true).write(true).create(true))
        .unwrap()
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("this fails");
    Errno::from_raw(error.raw_os_error().expect("every error has its number"))
}

#[test]
fn holes_are_made_found_and_kept_by_copies() {
    let fs = superuser();
    let file = both(&fs, "/f");
    file.write_all_at(&[1; 5 * 4096], 0).unwrap();
    file.punch_hole(4096, 2 * 4096).unwrap();
    file.fallocate(Fallocate::KEEP_SIZE, 8 * 4096, 4096)
        .unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5 * 4096);
    assert_eq!(file.seek_hole(0).unwrap(), Some(4096));
    assert_eq!(file.seek_data(4096).unwrap(), Some(3 * 4096));
    assert_eq!(file.seek_hole(3 * 4096).unwrap(), Some(5 * 4096));
    assert_eq!(file.seek_data(5 * 4096).unwrap(), None);
    assert_eq!(fs.copy("/f", "/copy").unwrap(), 5 * 4096);
    assert_eq!(fs.read("/copy").unwrap(), fs.read("/f").unwrap());
    assert_eq!(fs.metadata("/copy").unwrap().blocks(), 3 * 8);
    file.fallocate(Fallocate::COLLAPSE_RANGE, 0, 4096).unwrap();
    assert_eq!(
        (file.metadata().unwrap().len(), file.seek_data(0).unwrap()),
        (4 * 4096, Some(8192))
    );
    assert_eq!(
        errno(file.fallocate(Fallocate::empty(), 0, 0)),
        Errno::EINVAL
    );
}

#[test]
fn reads_and_writes_at_offsets_leave_the_position_alone() {
    let fs = superuser();
    let mut file = both(&fs, "/f");
    file.write_all(b"0123456789").unwrap();
    file.write_vectored_at(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")], 2)
        .unwrap();
    let (mut left, mut right) = ([0; 3], [0; 4]);
    let mut bufs = [IoSliceMut::new(&mut left), IoSliceMut::new(&mut right)];
    assert_eq!(file.read_vectored_at(&mut bufs, 1).unwrap(), 7);
    assert_eq!((&left, &right), (b"1ab", b"cd67"));
    assert_eq!(file.stream_position().unwrap(), 10);
    let error = file.read_exact_at(&mut [0; 4], 8).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(
        errno(fs.open("/f").unwrap().write_at(b"x", 0)),
        Errno::EBADF
    );
    let other = both(&fs, "/g");
    assert_eq!(file.copy_range_to(2, &other, 5, 100).unwrap(), 8);
    assert_eq!(fs.read("/g").unwrap(), b"\0\0\0\0\0abcd6789");
    assert_eq!(errno(file.copy_range_to(0, &file, 1, 5)), Errno::EINVAL);
}

#[test]
fn clones_share_the_offset_from_any_thread() {
    let fs = superuser();
    let file = both(&fs, "/f");
    thread::scope(|scope| {
        for number in 0..8_u8 {
            let mut clone = file.try_clone().unwrap();
            scope.spawn(move || {
                for _ in 0..100 {
                    clone.write_all(&[number; 100]).unwrap();
                }
            });
        }
    });
    let content = fs.read("/f").unwrap();
    assert_eq!(content.len(), 8 * 100 * 100);
    for piece in content.chunks(100) {
        assert!(
            piece.iter().all(|byte| byte == &piece[0]),
            "no two writes overlap"
        );
    }
    assert_eq!((&file).stream_position().unwrap(), 80_000);
}

#[test]
fn file_locks_wait_and_go_with_the_last_clone() {
    let fs = superuser();
    let (mine, yours) = (both(&fs, "/f"), both(&fs, "/f"));
    mine.lock_shared().unwrap();
    yours.try_lock_shared().unwrap();
    assert!(matches!(yours.try_lock(), Err(TryLockError::WouldBlock)));
    yours.unlock().unwrap();
    mine.lock().unwrap();
    let clone = mine.try_clone().unwrap();
    drop(mine);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            yours.lock().unwrap();
            sender.send(()).unwrap();
        });
        assert!(
            receiver.recv_timeout(MOMENT).is_err(),
            "the clone keeps the lock"
        );
        drop(clone);
        receiver.recv_timeout(AGES).unwrap();
    });
    assert_eq!(fs.stats().locks, 0);
}

#[test]
fn range_locks_meet_only_where_they_overlap() {
    let fs = superuser();
    let (mine, yours) = (both(&fs, "/f"), both(&fs, "/f"));
    mine.lock_range(10..20, LockKind::Write).unwrap();
    yours.try_lock_range(..10, LockKind::Write).unwrap();
    yours.try_lock_range(20.., LockKind::Read).unwrap();
    assert!(matches!(
        yours.try_lock_range(19..=19, LockKind::Read),
        Err(TryLockError::WouldBlock)
    ));
    mine.unlock_range(15..).unwrap();
    yours.try_lock_range(15..20, LockKind::Write).unwrap();
    let holder = yours
        .range_lock_holder(0.., LockKind::Write)
        .unwrap()
        .unwrap();
    assert_eq!(
        (holder.range.start, holder.range.end, holder.kind),
        (10, 14, LockKind::Write)
    );
    assert_eq!(errno(mine.lock_range(5..5, LockKind::Read)), Errno::EINVAL);
    assert_eq!(
        errno(fs.open("/f").unwrap().lock_range(.., LockKind::Write)),
        Errno::EBADF
    );

    let cancel = Cancel::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mine.lock_range_cancellable(.., LockKind::Write, &cancel));
        thread::sleep(MOMENT);
        cancel.cancel();
        assert_eq!(errno(waiter.join().unwrap()), Errno::EINTR);
    });
}

#[test]
fn extended_attributes_are_set_listed_and_removed() {
    let fs = superuser();
    fs.write("/f", "").unwrap();
    let file = fs.open("/f").unwrap();
    file.set_xattr("user.colour", "green", XattrSet::Create)
        .unwrap();
    assert_eq!(
        errno(fs.set_xattr("/f", "user.colour", "", XattrSet::Create)),
        Errno::EEXIST
    );
    assert_eq!(
        errno(fs.set_xattr("/f", "user.none", "", XattrSet::Replace)),
        Errno::ENODATA
    );
    fs.set_xattr("/f", "trusted.key", [0, 255], XattrSet::Any)
        .unwrap();
    let mut names = file.list_xattr().unwrap();
    names.sort();
    assert_eq!(names, ["trusted.key", "user.colour"]);
    let user = fs.as_user(Caller::user(1, 1));
    assert_eq!(user.list_xattr("/f").unwrap(), ["user.colour"]);
    assert_eq!(
        user.get_xattr("/f", "user.colour").unwrap().unwrap(),
        b"green"
    );
    assert_eq!(errno(user.remove_xattr("/f", "user.colour")), Errno::EACCES);
    file.remove_xattr("user.colour").unwrap();
    assert_eq!(file.get_xattr("user.colour").unwrap(), None);
    assert_eq!(errno(fs.remove_xattr("/f", "user.colour")), Errno::ENODATA);
    assert_eq!(errno(fs.get_xattr("/f", "what.ever")), Errno::EOPNOTSUPP);
}

#[test]
fn a_handle_to_the_name_only_looks_and_links() {
    let fs = superuser();
    fs.symlink("nowhere", "/link").unwrap();
    let mut options = OpenOptions::new();
    let o_path = 0o10_000_000;
    options.read(true).custom_flags(o_path).no_follow(true);
    let link = fs.open_with("/link", &options).unwrap();
    assert!(link.metadata().unwrap().is_symlink());
    fs.link_file(&link, "/second").unwrap();
    assert_eq!(fs.read_link("/second").unwrap(), Path::new("nowhere"));
    assert_eq!(errno(link.chown(Some(1), None)), Errno::EBADF);
    assert_eq!(errno(link.get_xattr("trusted.x")), Errno::EBADF);
    assert_eq!(errno(link.lock()), Errno::EBADF);
    assert_eq!(errno(link.unlock_range(..)), Errno::EBADF);
    assert_eq!(errno(link.sync_all()), Errno::EBADF);
}

#[test]
fn a_watcher_hears_of_a_directory_until_it_is_gone() {
    let fs = superuser();
    fs.create_dir("/d").unwrap();
    let mask = EventMask::CREATE | EventMask::MOVE | EventMask::DELETE | EventMask::DELETE_SELF;
    let watcher = fs.watch("/d", mask).unwrap();
    let actor = fs.clone();
    let thread = thread::spawn(move || {
        actor.write("/d/f", "").unwrap();
        actor.rename("/d/f", "/d/g").unwrap();
        actor.remove_file("/d/g").unwrap();
        actor.create_dir("/d/sub").unwrap();
        actor.remove_dir_all("/d").unwrap();
    });
    let events: Vec<_> = watcher.into_iter().collect();
    thread.join().unwrap();
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.mask, event.path.as_path()))
        .collect();
    let (d, sub) = (Path::new("/d"), Path::new("/d/sub"));
    assert_eq!(
        told,
        [
            (EventMask::CREATE, Path::new("/d/f")),
            (EventMask::MOVED_FROM, Path::new("/d/f")),
            (EventMask::MOVED_TO, Path::new("/d/g")),
            (EventMask::DELETE, Path::new("/d/g")),
            (EventMask::CREATE | EventMask::ISDIR, sub),
            (EventMask::DELETE | EventMask::ISDIR, sub),
            (EventMask::DELETE_SELF, d),
            (EventMask::IGNORED, d),
        ]
    );
    assert_eq!(events[1].cookie, events[2].cookie);
    assert_eq!(events[0].name(), Some("f".as_ref()));
    assert_eq!(events[6].name(), None);
}

#[test]
fn watching_needs_permission_to_read() {
    let fs = superuser();
    fs.write("/f", "").unwrap();
    fs.set_permissions("/f", Permissions::from_mode(0o600))
        .unwrap();
    let user = fs.as_user(Caller::user(1, 1));
    assert_eq!(
        errno(user.watch("/f", EventMask::ALL_EVENTS)),
        Errno::EACCES
    );
    assert_eq!(errno(fs.watch("/f", EventMask::empty())), Errno::EINVAL);
    let watcher = fs.watch("/f", EventMask::MODIFY).unwrap();
    assert_eq!(
        (watcher.recv_timeout(Duration::ZERO), fs.stats().watches),
        (None, 1)
    );
    drop(watcher);
    assert_eq!(fs.stats().watches, 0);
}
