//! A lock in one byte, under every interleaving of a few threads, and every order in which their accesses may be seen.
//!
//! What is behind it is watched by loom: two of whom one changes it at the same time, or who do not see what was done
//! before, end the model.
#![expect(unsafe_code, reason = "what is behind a lock without a value")]

#[path = "../../src/bolt.rs"]
pub mod bolt;
mod bolt_primitive;

use bolt::Bolt;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A count behind a bolt.
struct Counted {
    bolt: Bolt,
    count: UnsafeCell<u32>,
}

// SAFETY: the count is reached by who has the bolt; that this holds is what is tried.
unsafe impl Sync for Counted {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Counted {}

impl Counted {
    /// One more, by whoever has the bolt.
    fn count(&self) {
        // SAFETY: the bolt is held.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }

    fn locked(&self) {
        let _held = self.bolt.lock();
        self.count();
    }

    /// Without waiting; how often it worked.
    fn tried(&self) -> u32 {
        let held = self.bolt.try_lock();
        held.map_or(0, |_held| {
            self.count();
            1
        })
    }
}

fn once(counted: &Counted) -> u32 {
    counted.locked();
    1
}

/// One thread does `own`, so many others `part`. Two who wait at the same time would take turns at it for ever, as loom
/// goes.
fn model(own: fn(&Counted) -> u32, part: fn(&Counted) -> u32, others: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let counted = Arc::new(Counted {
            bolt: Bolt::new(),
            count: UnsafeCell::new(0),
        });
        let spawn = |_| {
            let counted = Arc::clone(&counted);
            thread::spawn(move || part(&counted))
        };
        let others: Vec<_> = (0..others).map(spawn).collect();
        let own = own(&counted);
        let sum: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        let _held = counted.bolt.try_lock().expect("everybody gave it back");
        // SAFETY: the bolt is held.
        let count = counted.count.with(|count| unsafe { *count });
        assert_eq!(count, own + sum);
    });
}

#[test]
fn whoever_has_it_is_alone_and_sees_what_was_done_before() {
    let twice = |counted: &Counted| {
        counted.locked();
        counted.locked();
        2
    };
    model(twice, twice, 1);
}

#[test]
fn of_three_one_waits_and_two_do_not() {
    model(once, Counted::tried, 2);
}

#[test]
fn who_does_not_wait_gets_it_or_not() {
    let both = |counted: &Counted| {
        let tried = counted.tried();
        counted.locked();
        tried + 1
    };
    model(both, both, 1);
}
