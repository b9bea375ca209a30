//! The log-order lock, under every interleaving.

use crate::log_order::{LogOrdered, take};
use crate::primitive::Mutex;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

/// An inode with one attribute, which counts its changes, and the store's value of it.
struct File {
    number: u64,
    attribute: AtomicU32,
    turn: Mutex<()>,
    stored: AtomicU32,
}

impl LogOrdered for File {
    fn number(&self) -> u64 {
        self.number
    }

    fn log_order(&self) -> &Mutex<()> {
        &self.turn
    }
}

impl File {
    fn new(number: u64) -> Self {
        Self {
            number,
            attribute: AtomicU32::new(0),
            turn: Mutex::new(()),
            stored: AtomicU32::new(0),
        }
    }

    /// The core's part: a change that is complete before the store is called.
    fn change(&self) -> u32 {
        self.attribute.fetch_add(1, Relaxed) + 1
    }

    /// The store's part, in two steps, so that an unordered call in between would be overwritten.
    fn store(&self, latest: u32) {
        assert!(
            self.stored.load(Relaxed) <= latest,
            "what was before came back"
        );
        self.stored.store(latest, Relaxed);
    }
}

/// One operation on these files.
fn operate<const N: usize>(files: [&File; N]) {
    let made = files.map(File::change);
    let log_order = take(files);
    for (file, made) in files.iter().zip(made) {
        let latest = file.attribute.load(Relaxed);
        assert!(latest >= made);
        file.store(latest);
    }
    drop(log_order);
}

#[test]
fn the_store_is_left_with_the_last_attributes() {
    loom::model(|| {
        let file = Arc::new(File::new(7));
        let other = Arc::clone(&file);
        let beside = thread::spawn(move || operate([&*other]));
        operate([&*file]);
        beside.join().unwrap();
        assert_eq!(file.stored.load(Relaxed), 2);
    });
}

#[test]
fn operations_that_name_their_inodes_in_any_order_end() {
    loom::model(|| {
        let files = Arc::new([File::new(1), File::new(2), File::new(3)]);
        let others = Arc::clone(&files);
        let beside = thread::spawn(move || {
            let [a, b, c] = &*others;
            operate([c, b, a]);
        });
        let [a, b, c] = &*files;
        operate([a, c, b]);
        beside.join().unwrap();
        let stored = files.each_ref().map(|file| file.stored.load(Relaxed));
        assert_eq!(stored, [2, 2, 2]);
    });
}

#[test]
fn an_inode_that_is_named_twice_has_one_turn() {
    loom::model(|| {
        let files = Arc::new([File::new(9), File::new(4)]);
        let others = Arc::clone(&files);
        let beside = thread::spawn(move || drop(take([&others[0], &others[1], &others[0]])));
        // A thread that took the lock twice would deadlock.
        drop(take([&files[1], &files[1], &files[1]]));
        beside.join().unwrap();
    });
}
