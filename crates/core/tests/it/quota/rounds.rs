//! Few inodes and many rounds: in each, quotas are switched on while those inodes change.

use super::{common, memory, told, truth, user};
use holdfast_core::types::{Caller, Errno, FileType, OpenFlags, SetAttr};
use holdfast_core::{FileSystem, Node};
use holdfast_testkit::rng::Rng;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

/// Switches quotas on `rounds` times, each time while every worker does its work once. Then usage
/// has to match the inodes, and the results of the work are dropped.
fn in_rounds<T: Send>(fs: &FileSystem, rounds: u32, work: impl Fn(&mut Rng) -> T + Sync) {
    let mut workers = [0, 1].map(Rng::new);
    for round in 0..rounds {
        let started = AtomicU32::new(0);
        let left = thread::scope(|scope| {
            let workers = workers.each_mut().map(|numbers| {
                scope.spawn(|| {
                    started.fetch_add(1, SeqCst);
                    work(numbers)
                })
            });
            while started.load(SeqCst) < 2 {
                thread::yield_now();
            }
            for _ in 0..round % 8 {
                thread::yield_now();
            }
            fs.quota_on(true).unwrap();
            workers.map(|worker| worker.join().unwrap())
        });
        assert_eq!(told(fs), truth(fs), "after round {round}");
        drop(left);
        assert_eq!(told(fs), truth(fs), "when round {round} is over");
        fs.quota_off();
    }
}

#[test]
fn an_unnamed_file_that_comes_while_others_are_counted_is_counted_once() {
    let fs = memory();
    let dir = common(&fs, b"d");
    in_rounds(&fs, 1500, |numbers| {
        let mut open = Vec::new();
        for _ in 0..numbers.below(30) {
            let file = fs.tmpfile(&user(1, 10), &dir, 0o600, OpenFlags::READ_WRITE);
            open.push(file.unwrap());
            thread::yield_now();
        }
        open
    });
}

#[test]
fn a_file_that_changes_size_and_owner_while_it_is_counted_is_counted_right() {
    let fs = memory();
    let dir = common(&fs, b"d");
    let flags = OpenFlags::READ_WRITE;
    let file = fs
        .create(&Caller::root(), &dir, b"f", 0o666, flags)
        .unwrap();
    in_rounds(&fs, 3000, |numbers| {
        for _ in 0..numbers.below(30) {
            let who = user(numbers.below(3) as u32, 10);
            let mut set = SetAttr::default();
            match numbers.below(3) {
                0 => set.uid = Some(who.uid),
                1 => set.size = Some(numbers.below(9000)),
                _ => {
                    let at = numbers.below(30_000);
                    fs.write(&who, &file, at, &[1; 9000]).unwrap();
                    continue;
                }
            }
            fs.setattr(&who, file.node(), &set, None).unwrap();
        }
    });
}

#[test]
fn what_has_no_content_and_changes_hands_while_it_is_counted_is_counted_right() {
    let fs = memory();
    let who = Caller::root();
    let dir = common(&fs, b"d");
    let pipe = fs.mknod(&who, &dir, b"p", FileType::Fifo, 0o600, 0);
    let nodes: [Node; 2] = [pipe.unwrap(), dir];
    in_rounds(&fs, 3000, |numbers| {
        for _ in 0..numbers.below(60) {
            let set = SetAttr {
                uid: Some(numbers.below(3) as u32),
                ..SetAttr::default()
            };
            let node = &nodes[numbers.below(2) as usize];
            fs.setattr(&who, node, &set, None).unwrap();
        }
    });
}

#[test]
fn whoever_switches_on_while_the_file_system_goes_leaves_quotas_off() {
    for _ in 0..300 {
        let fs = memory();
        let kept = fs.root();
        thread::scope(|scope| {
            let switch = || {
                loop {
                    match fs.quota_on(false) {
                        Ok(()) => fs.quota_off(),
                        Err(Errno::EBUSY) => {}
                        Err(error) => return error,
                    }
                }
            };
            let switchers = [(); 3].map(|()| scope.spawn(switch));
            for _ in 0..20 {
                thread::yield_now();
            }
            fs.revoke().unwrap();
            for switcher in switchers {
                assert_eq!(switcher.join().unwrap(), Errno::EIO);
            }
        });
        assert!(!fs.quota_is_on());
        drop(kept);
    }
}
