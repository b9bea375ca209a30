//! Many threads in one tree: nothing is lost, nothing leaks, nobody waits for ever.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use holdfast::{Caller, FileSystem, Options, RenameFlags};

const THREADS: u64 = 8;
const ROUNDS: u64 = 3000;

/// Fails for anything but what racing threads may do to one another.
fn tolerate<T>(result: std::io::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::DirectoryNotEmpty
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput => None,
            _ => panic!("{error}"),
        },
    }
}

#[test]
fn counts_return_to_where_they_were() {
    let fs = FileSystem::memory();
    fs.create_dir("/d").unwrap();
    let before = (
        fs.stats(),
        fs.space().unwrap().blocks_free,
        fs.space().unwrap().files_free,
    );
    thread::scope(|scope| {
        for me in 0..THREADS {
            let fs = &fs;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Three names that all threads fight for.
                    let (a, b) = (round * 7 + me, round * 3 + me);
                    let (from, to) = (format!("/d/{}", a % 3), format!("/d/{}", b % 3));
                    match (round + me) % 6 {
                        0 | 1 => drop(tolerate(fs.write(&from, [me as u8; 5000]))),
                        2 => drop(tolerate(fs.rename(&from, &to))),
                        3 => drop(tolerate(fs.remove_file(&from))),
                        4 => drop(tolerate(fs.hard_link(&from, &to))),
                        _ => {
                            let content = tolerate(fs.read(&from)).unwrap_or_default();
                            assert!(content.len() <= 5000);
                        }
                    }
                    fs.read_dir("/d")
                        .unwrap()
                        .for_each(|entry| drop(entry.unwrap()));
                }
            });
        }
    });
    fs.remove_dir_all("/d").unwrap();
    fs.create_dir("/d").unwrap();
    let after = (
        fs.stats(),
        fs.space().unwrap().blocks_free,
        fs.space().unwrap().files_free,
    );
    assert_eq!(after, before);
}

#[test]
fn own_names_in_one_directory_are_never_lost() {
    let fs = FileSystem::memory();
    let before = fs.stats();
    fs.create_dir("/d").unwrap();
    thread::scope(|scope| {
        for me in 0..THREADS {
            let fs = &fs;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let (first, last) = (format!("/d/{me}-{round}"), format!("/d/{round}-{me}-x"));
                    fs.create_new(&first)
                        .unwrap()
                        .write_all_at(b"mine", 0)
                        .unwrap();
                    fs.rename(&first, &last).unwrap();
                    assert_eq!(fs.read(&last).unwrap(), b"mine");
                    if round % 10 != 0 {
                        fs.remove_file(&last).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(
        fs.read_dir("/d").unwrap().count() as u64,
        THREADS * ROUNDS / 10
    );
    fs.remove_dir_all("/d").unwrap();
    assert_eq!(fs.stats(), before);
}

#[test]
fn trees_are_made_and_removed_at_once() {
    let fs = FileSystem::memory();
    let before = fs.stats();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let makers: Vec<_> = (0..THREADS / 2)
            .map(|me| {
                let fs = &fs;
                scope.spawn(move || {
                    for round in 0..ROUNDS / 10 {
                        tolerate(fs.create_dir_all(format!("/t/{}/x/y/z", round % 3)));
                        tolerate(fs.write(format!("/t/{}/x/{me}", round % 3), "leaf"));
                        tolerate(fs.symlink("/t", format!("/t/{}/x/up", round % 3)));
                        tolerate(fs.rename(format!("/t/{}/x", round % 3), "/t/1/x/moved"));
                    }
                })
            })
            .collect();
        for _ in 0..THREADS / 2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    tolerate(fs.remove_dir_all("/t"));
                }
            });
        }
        for maker in makers {
            maker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    tolerate(fs.remove_dir_all("/t"));
    assert_eq!(fs.stats(), before);
}

#[test]
fn removing_a_tree_follows_no_link_that_is_put_in_its_way() {
    let fs = FileSystem::memory();
    fs.create_dir("/precious").unwrap();
    for number in 0..10 {
        fs.write(format!("/precious/{number}"), "gold").unwrap();
    }
    fs.symlink("/precious", "/lure").unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                tolerate(fs.create_dir_all("/t/x/y"));
                tolerate(fs.rename_with("/lure", "/t/x/y", RenameFlags::EXCHANGE));
                tolerate(fs.rename_with("/lure", "/t/x", RenameFlags::EXCHANGE));
                if tolerate(fs.read_link("/lure")).is_none() {
                    tolerate(fs.remove_dir_all("/lure"));
                    tolerate(fs.symlink("/precious", "/lure"));
                }
            }
        });
        for _ in 0..ROUNDS {
            tolerate(fs.remove_dir_all("/t"));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs.read_dir("/precious").unwrap().count(), 10);
}

#[test]
fn a_limit_is_never_passed_and_all_of_it_comes_back() {
    let options = Options::default();
    let fs = FileSystem::builder()
        .bytes_max(64 * 4096)
        .inodes_max(20)
        .options(options)
        .build();
    thread::scope(|scope| {
        for me in 0..THREADS {
            let fs = fs.as_user(Caller::root());
            scope.spawn(move || {
                let path = format!("/{me}");
                for round in 0..ROUNDS / 10 {
                    let size = (round * 911 % 20) as usize * 4096;
                    match fs.write(&path, vec![1; size]) {
                        Ok(()) => assert_eq!(fs.read(&path).unwrap().len(), size),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::StorageFull),
                    }
                    let space = fs.space().unwrap();
                    assert!(space.blocks_free <= 64 && space.files_free < 20);
                    tolerate(fs.remove_file(&path));
                }
            });
        }
    });
    let space = fs.space().unwrap();
    assert_eq!((space.blocks_free, space.files_free), (64, 19));
    assert_eq!(fs.stats().pages, 0);
}
