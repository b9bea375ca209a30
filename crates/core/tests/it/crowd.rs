//! Many threads in one directory of many names: counts are exact, and concurrent listings neither
//! lose nor repeat a name that stays.

use holdfast_core::types::{Caller, OpenFlags, RenameFlags, SetAttr, SetTime, Time};
use holdfast_core::{FileSystem, MemoryLimits, Node, Options};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const STAY: usize = 500;
const THREADS: usize = 4;

struct Place {
    fs: FileSystem,
    who: Caller,
    dir: Node,
}

impl Place {
    /// A directory with names that no thread changes.
    fn new() -> Self {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let who = Caller::root();
        let dir = fs.mkdir(&who, &fs.root(), b"crowd", 0o755).unwrap();
        let place = Self { fs, who, dir };
        (0..STAY).for_each(|number| place.create(&format!("stay-{number}")));
        place
    }

    fn create(&self, name: &str) {
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::EXCLUSIVE;
        let made = self
            .fs
            .create(&self.who, &self.dir, name.as_bytes(), 0o644, flags);
        drop(made.unwrap());
    }

    fn unlink(&self, name: &str) {
        let done = self.fs.unlink(&self.who, &self.dir, name.as_bytes());
        assert_eq!(done, Ok(()), "{name}");
    }

    fn rename(&self, from: &str, to: &str) {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let flags = RenameFlags::empty();
        let done = self
            .fs
            .rename(&self.who, &self.dir, from, &self.dir, to, flags);
        assert_eq!(done, Ok(()));
    }

    /// All names but `.` and `..`, listed `piece` at a time, with how often each was listed.
    fn list(&self, piece: usize) -> BTreeMap<String, u32> {
        let open = self
            .fs
            .open(&self.who, &self.dir, OpenFlags::DIRECTORY)
            .unwrap();
        let mut names = BTreeMap::new();
        let (mut after, mut is_more) = (0, true);
        while is_more {
            let mut left = piece;
            is_more = false;
            let mut last = after;
            self.fs
                .read_dir(&open, after, &mut |entry| {
                    if left == 0 {
                        is_more = true;
                        return false;
                    }
                    left -= 1;
                    assert!(entry.cookie > last && entry.cookie < 1 << 63);
                    last = entry.cookie;
                    let name = String::from_utf8(entry.name.to_vec()).unwrap();
                    *names.entry(name).or_default() += 1;
                    true
                })
                .unwrap();
            after = last;
        }
        names.remove(".");
        names.remove("..");
        names
    }

    fn assert_counts(&self, names: usize, subdirs: u32) {
        let attr = self.fs.getattr(&self.dir);
        assert_eq!(attr.size, 40 + 20 * names as u64);
        assert_eq!(attr.nlink, 2 + subdirs);
        let listed = self.list(97);
        assert_eq!(listed.len(), names);
        assert!(listed.values().all(|&times| times == 1));
    }
}

/// Runs `change` in some threads, and `look` in one more until they are done.
fn crowd(change: impl Fn(usize) + Sync, look: impl Fn() + Sync) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                look();
            }
        });
        let change = &change;
        let changing: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || change(thread)))
            .collect();
        let ended: Vec<_> = changing.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        looking.join().unwrap();
        ended.into_iter().for_each(|thread| thread.unwrap());
    });
}

#[test]
fn names_links_and_times_of_a_crowded_directory_add_up() {
    let place = Place::new();
    let lasting = |names: &BTreeMap<String, u32>| {
        let staying = names.iter().filter(|(name, _)| name.starts_with("stay"));
        assert!(staying.clone().all(|(_, &times)| times == 1));
        assert_eq!(staying.count(), STAY);
    };
    crowd(
        |thread| {
            for round in 0..2000 {
                let name = |what: &str| format!("{what}-{thread}-{round}");
                place.create(&name("made"));
                match round % 4 {
                    0 => place.unlink(&name("made")),
                    1 => place.rename(&name("made"), &name("moved")),
                    2 => {
                        let made = name("dir");
                        place
                            .fs
                            .mkdir(&place.who, &place.dir, made.as_bytes(), 0o755)
                            .unwrap();
                        if round % 8 == 2 {
                            place
                                .fs
                                .rmdir(&place.who, &place.dir, made.as_bytes())
                                .unwrap();
                        }
                    }
                    _ => {
                        place.create(&name("replaced"));
                        place.rename(&name("made"), &name("replaced"));
                    }
                }
            }
        },
        || {
            lasting(&place.list(61));
            let attr = place.fs.getattr(&place.dir);
            assert!(attr.nlink >= 2 && attr.mtime == attr.ctime);
        },
    );
    // Of four rounds: none, one renamed, one and a directory (every other time), one replaced.
    let names = STAY + THREADS * (3 * 500 + 250);
    place.assert_counts(names, 250 * THREADS as u32);
    let stats = place.fs.stats();
    assert_eq!(stats.names, names as u64 + 1);
    assert_eq!(stats.inodes, names as u64 + 2);
}

#[test]
fn what_a_crowd_has_made_it_can_remove_until_nothing_is_left() {
    let place = Place::new();
    for _ in 0..3 {
        crowd(
            |thread| (0..1000).for_each(|round| place.create(&format!("f-{thread}-{round}"))),
            || drop(place.list(10)),
        );
        place.assert_counts(STAY + THREADS * 1000, 0);
        crowd(
            // Created by another thread.
            |thread| {
                let other = (thread + 1) % THREADS;
                (0..1000).for_each(|round| place.unlink(&format!("f-{other}-{round}")));
            },
            || drop(place.list(1000)),
        );
        place.assert_counts(STAY, 0);
    }
    (0..STAY).for_each(|number| place.unlink(&format!("stay-{number}")));
    place.assert_counts(0, 0);
    let root = place.fs.root();
    place.fs.rmdir(&place.who, &root, b"crowd").unwrap();
    assert_eq!(place.fs.stats().names, 0);
}

#[test]
fn a_directory_s_times_move_with_its_names_and_where_they_are_set_to() {
    let place = Place::new();
    let attr = || place.fs.getattr(&place.dir);
    let set = SetAttr {
        mtime: Some(SetTime::At(Time(5))),
        ..SetAttr::default()
    };
    place
        .fs
        .setattr(&place.who, &place.dir, &set, None)
        .unwrap();
    assert_eq!(attr().mtime, Time(5));
    let ctime = attr().ctime;
    assert!(ctime > Time(5));
    place.create("one-more");
    assert!(attr().mtime >= ctime && attr().ctime >= ctime);
    place
        .fs
        .setattr(&place.who, &place.dir, &set, None)
        .unwrap();
    assert_eq!(attr().mtime, Time(5));
    place.unlink("one-more");
    assert!(attr().mtime >= ctime);
    place.assert_counts(STAY, 0);
}

#[test]
fn nothing_is_made_in_a_crowded_directory_once_it_was_removed() {
    let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
    let who = Caller::root();
    for round in 0..40 {
        let name = format!("dir-{round}");
        let dir = fs.mkdir(&who, &fs.root(), name.as_bytes(), 0o755).unwrap();
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::EXCLUSIVE;
        let create = |name: &str| fs.create(&who, &dir, name.as_bytes(), 0o644, flags);
        (0..100).for_each(|number| drop(create(&format!("{number}")).unwrap()));
        let made = thread::scope(|scope| {
            let makers: Vec<_> = (0..2)
                .map(|thread| {
                    let create = &create;
                    scope.spawn(move || create(&format!("late-{thread}")).is_ok())
                })
                .collect();
            for number in 0..100 {
                fs.unlink(&who, &dir, format!("{number}").as_bytes())
                    .unwrap();
            }
            let removed = fs.rmdir(&who, &fs.root(), name.as_bytes()).is_ok();
            let made = makers.into_iter().map(|maker| maker.join().unwrap());
            (removed, made.filter(|made| *made).count())
        });
        assert!(made == (true, 0) || made == (false, 2) || made.1 == 1 && !made.0);
        assert_eq!(create("too late").is_ok(), !made.0);
    }
}
