//! Many threads in one tree: nothing is lost, nothing leaks, and no thread waits for ever.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use holdfast::{FileSystem, RenameFlags};

const THREADS: u64 = 8;
const ROUNDS: u64 = 3000;

/// Panics on errors that races of threads do not explain.
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
