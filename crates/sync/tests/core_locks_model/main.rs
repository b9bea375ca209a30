//! The locks of cores under every interleaving of a few threads, and every order in which their memory
//! accesses may be seen.
//!
//! They are compiled here once more with loom's atomics and locks, and with a barrier which is what
//! membarrier(2) is. Values are watched: reached by two threads at once, of which one changes it, loom says so; and
//! a wake-up that is lost leaves a thread asleep, which it says as well.
#![expect(unsafe_code, reason = "values that loom watches")]

/// As it is.
#[path = "../../src/padded.rs"]
pub mod padded;

#[path = "../../src/core_locks.rs"]
pub mod core_locks;
mod core_locks_primitive;

#[path = "../epoch_model/epoch_primitive.rs"]
#[expect(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the epochs need more of it"
)]
mod epoch_primitive;

use core_locks::CoreLocks;
use core_locks_primitive::{begin, come};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// A value that loom watches.
struct Value(UnsafeCell<u32>);

// SAFETY: whether accesses are ordered is loom's to judge.
unsafe impl Sync for Value {}
// SAFETY: as above.
unsafe impl Send for Value {}

impl Value {
    fn get(&self) -> u32 {
        // SAFETY: loom panics before two meet here.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self) {
        // SAFETY: loom panics before two meet here.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

type Locks = CoreLocks<Value>;

fn reads(locks: &Locks) {
    let value = locks.read();
    let once = value.get();
    let again = locks.read();
    assert_eq!(again.get(), once);
}

fn changes(locks: &Locks) {
    locks.lock().0.with(|_| {});
    locks.lock().add();
}

fn changes_twice(locks: &Locks) {
    changes(locks);
    changes(locks);
}

fn closes(locks: &Locks) {
    let closed = locks.close();
    closed.iter().for_each(Value::add);
}

/// Runs threads in every order; tells how much was added to all values. `before`: is there a barrier when the
/// locks are made? `after`: and from then on?
fn model(
    preemptions: usize,
    (before, after): (bool, bool),
    threads: &'static [fn(&Locks)],
    sum: u32,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        begin(before);
        let locks = Arc::new(Locks::new(|_| Value(UnsafeCell::new(0))));
        begin(after);
        let run = |each: fn(&Locks), locks: &Locks| {
            let _member = come();
            each(locks);
        };
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|each| {
                let locks = Arc::clone(&locks);
                loom::thread::spawn(move || run(*each, &locks))
            })
            .collect();
        run(threads[0], &locks);
        for other in others {
            other.join().expect("no panic");
        }
        let _member = come();
        let closed = locks.close();
        assert_eq!(closed.iter().map(Value::get).sum::<u32>(), sum);
    });
}

/// With a barrier all the time, without one, and with one that comes later.
const BARRIERS: [(bool, bool); 3] = [(true, true), (false, false), (false, true)];

#[test]
fn who_closes_and_who_changes_never_meet() {
    for barriers in BARRIERS {
        model(3, barriers, &[closes, changes], 4);
    }
}

#[test]
fn who_reads_sees_one_value_until_he_leaves() {
    for barriers in BARRIERS {
        model(3, barriers, &[closes, reads], 3);
    }
}

#[test]
fn two_may_close_beside_one_inside() {
    for barriers in BARRIERS {
        model(2, barriers, &[closes, changes, closes], 7);
    }
}

#[test]
fn values_of_two_cores_have_nothing_to_do_with_each_other() {
    for barriers in BARRIERS {
        model(2, barriers, &[changes, changes_twice, closes], 6);
    }
}
