//! Effects of changes on the names of a directory.

use super::*;
use crate::inode::{Content, ContentState, DirectoryBody, Extension, Meta, Object};
use crate::store::NameRun;
use crate::types::{Caller, Errno, FileType, Ino, OpenFlags, Result, Time};
use crate::{FileSystem, MemoryLimits, Options};
use std::sync::atomic::AtomicU64;

fn inode(complete: bool) -> Object {
    let meta = Meta::new(0o755, 0, 0, Time(5));
    let body = DirectoryBody {
        parent: AtomicU64::new(1),
        names: Directory::empty(complete),
    };
    let content = Content::Directory(body);
    let extension = Extension::of(content, None);
    Object::new(1, FileType::Directory, &meta, extension, ContentState::All)
}

fn load(loaded: &mut Loaded, name: &[u8], cookie: u64, ino: u64) -> Result<()> {
    let mut run = NameRun::default();
    run.push(name, cookie, Ino(ino), FileType::Fifo);
    loaded.add(&run, u64::MAX)
}

fn add(names: &mut Names<'_>, name: &[u8], ino: u64) -> u64 {
    let cookie = names.next_cookie();
    names
        .insert(name, cookie, Ino(ino), FileType::Fifo)
        .unwrap();
    cookie
}

#[test]
fn what_no_store_may_say_is_corruption() {
    let mut loaded = Loaded::new();
    load(&mut loaded, b"a", 10, 9).unwrap();
    let mut again = |name: &[u8], cookie, ino| load(&mut loaded, name, cookie, ino);
    assert_eq!(again(b"b", 10, 9), Err(Errno::EUCLEAN), "order");
    assert_eq!(again(b"a", 11, 9), Err(Errno::EUCLEAN), "twice");
    assert_eq!(again(b"", 12, 9), Err(Errno::EUCLEAN), "no name");
    assert_eq!(again(b"c", 13, u64::MAX), Err(Errno::EUCLEAN), "no number");
}

#[test]
fn a_name_that_left_memory_is_not_taken_for_absent() {
    let inode = inode(true);
    let dir = &inode.directory().unwrap().names;
    let mut names = dir.write();
    let cookie = add(&mut names, b"a", 9);
    let seen = dir.see();
    names.become_partial(1, cookie + 1);
    assert!(!dir.is_still(seen) && dir.place() == Residency::Partial);
    assert_eq!((dir.look(b"a"), names.len()), (Known::Unknown, 1));
    assert_eq!((dir.cached(), dir.last_cookie()), (0, cookie));
    // The filter's share.
    let filter = names.recount();
    let changes = names.changes();
    names.begin_change();
    assert_ne!(names.changes(), changes);
    let entry = Entry::new(cookie, 9, FileType::Fifo.dirent_type());
    names.learn(b"a", Some(entry), 100);
    names.learn(b"b", None, 100);
    assert_eq!((names.asked(), names.recount(), names.recount()), (2, 2, 0));
    assert_eq!(dir.look(b"a"), Known::Found(entry));
    assert_eq!(dir.look(b"b"), Known::Negative);
    assert!(add(&mut names, b"b", 10) > cookie);
    assert_eq!(names.len(), 2);
    drop(names);
    let mut loaded = Loaded::new();
    load(&mut loaded, b"a", cookie, 9).unwrap();
    let mut names = dir.write();
    names.complete(loaded);
    assert_eq!((names.len(), names.recount()), (1, -2 - filter));
    assert_eq!(dir.look(b"b"), Known::Negative);
    names.forget(true);
    assert_eq!(
        (dir.place(), dir.look(b"b")),
        (Residency::Unloaded, Known::Unknown)
    );
}

#[test]
fn cookies_of_names_that_threads_make_side_by_side_fit_offsets_of_32_bits() {
    let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
    let (who, root) = (Caller::root(), fs.root());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fs, who, root) = (&fs, &who, &root);
            scope.spawn(move || {
                for number in 0..200 {
                    let name = format!("{thread}-{number}");
                    fs.mknod(who, root, name.as_bytes(), FileType::Fifo, 0o644, 0)
                        .unwrap();
                }
            });
        }
    });
    let dir = fs.open(&who, &root, OpenFlags::DIRECTORY).unwrap();
    let mut cookies = Vec::new();
    fs.read_dir(&dir, 0, &mut |entry| {
        cookies.push(entry.cookie);
        true
    })
    .unwrap();
    assert_eq!(cookies.len(), 802);
    assert!(cookies.is_sorted_by(|one, other| one < other));
    assert!(cookies.last() < Some(&(1 << 31)), "{:?}", cookies.last());
}
