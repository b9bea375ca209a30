//! A function lent to another thread, under every interleaving of the two.
//!
//! What the function reaches is watched by loom: if it were called while its owner goes on with it, or after he let it
//! go, the model ends; and so it does if he is left asleep.
#![expect(unsafe_code, reason = "what loom watches is reached through it")]

#[path = "../../src/loan.rs"]
pub mod loan;
mod loan_primitive;

#[path = "../index_model/primitive.rs"]
#[expect(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the index needs more of it"
)]
mod primitive;

use loan::{Errand, lend};
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// What the owner has, and lends with the function.
struct Borrowed {
    value: UnsafeCell<u32>,
    /// Loom lets another thread run where one reaches something that is made to be shared, and nowhere else.
    passed: AtomicU32,
}

// SAFETY: whether accesses are ordered is loom's to judge.
unsafe impl Sync for Borrowed {}

impl Borrowed {
    fn new() -> Self {
        Self {
            value: UnsafeCell::new(0),
            passed: AtomicU32::new(0),
        }
    }

    fn add(&self) {
        self.passed.load(Ordering::Relaxed);
        // SAFETY: loom panics before two meet here.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.passed.load(Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.value.with(|value| unsafe { *value })
    }
}

#[test]
fn it_is_called_once_or_never_and_not_when_its_owner_goes_on() {
    loom::model(|| {
        let borrowed = Borrowed::new();
        let (mut helper, mut own) = (None, false);
        let help = || borrowed.add();
        let offer = |errand: Errand| helper = Some(thread::spawn(move || errand.run()));
        lend(&help, offer, || own = true);
        assert!(own);
        let seen = borrowed.get();
        assert!(seen <= 1);
        borrowed.add();
        helper.expect("offered").join().unwrap();
        assert_eq!(borrowed.get(), seen + 1, "it was called later");
    });
}

#[test]
fn parts_that_two_take_are_all_done() {
    loom::model(|| {
        let left = Mutex::new(2_u32);
        let done = Borrowed::new();
        let lock = Mutex::new(());
        let take = || {
            let next = || {
                let mut left = left.lock().unwrap();
                let rest = left.checked_sub(1);
                *left = rest.unwrap_or(0);
                rest
            };
            while next().is_some() {
                let _alone = lock.lock().unwrap();
                done.add();
            }
        };
        let mut helper = None;
        let offer = |errand: Errand| helper = Some(thread::spawn(move || errand.run()));
        lend(&take, offer, take);
        assert_eq!(done.get(), 2);
        helper.expect("offered").join().unwrap();
    });
}
