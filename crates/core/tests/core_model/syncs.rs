//! Access times that wait for the next sync, under every interleaving of reads and syncs.

use crate::lazytime::Lazytime;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use loom::thread;

/// A file system of one inode.
#[derive(Default)]
struct World {
    lazytime: Lazytime,
    /// Does its access time wait in memory?
    marked: AtomicBool,
    /// How often it was submitted to the store.
    written: AtomicU32,
}

impl World {
    /// A read that moves the access time.
    fn read(&self) {
        self.marked.store(true, Relaxed);
        self.lazytime.note();
    }

    /// A sync; the walk fails if `fails` is set.
    fn sync(&self, fails: bool) {
        let walk = || {
            if fails {
                return Err("no walk");
            }
            if self.marked.swap(false, Relaxed) {
                self.written.fetch_add(1, Relaxed);
            }
            Ok(())
        };
        let _ = self.lazytime.write(walk);
    }

    /// A marked inode is noted, and one more sync writes its time.
    fn check(&self) {
        assert!(
            self.lazytime.any() || !self.marked.load(Relaxed),
            "marked, and no sync will look"
        );
        self.sync(false);
        assert!(!self.marked.load(Relaxed) && self.written.load(Relaxed) >= 1);
    }
}

fn model(threads: &'static [fn(&World)]) {
    loom::model(move || {
        let world = Arc::new(World::default());
        let others = threads.iter().map(|thread| {
            let world = Arc::clone(&world);
            thread::spawn(move || thread(&world))
        });
        let others: Vec<_> = others.collect();
        world.read();
        others.into_iter().for_each(|other| other.join().unwrap());
        world.check();
    });
}

#[test]
fn what_is_marked_beside_a_sync_is_met_by_it_or_by_the_next() {
    model(&[|world| world.sync(false)]);
}

#[test]
fn what_a_failed_sync_did_not_write_is_noted_still() {
    model(&[|world| world.sync(true)]);
}

#[test]
fn two_readers_and_a_sync_lose_nothing() {
    model(&[World::read, |world| world.sync(false)]);
}

#[test]
fn a_sync_beside_another_loses_nothing() {
    model(&[|world| world.sync(true), |world| world.sync(false)]);
}
