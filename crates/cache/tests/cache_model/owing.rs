//! Deferred work of shrinkers, under every interleaving of passes: what was deferred and added is
//! what was done and is deferred.

use crate::deferral::Deferral;
use crate::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

/// More than all passes of a model could owe.
const MOST: u64 = 1000;

/// An interface that takes deferred work and gives it back.
trait Owing: Send + Sync + 'static {
    fn none() -> Self;
    fn take(&self) -> u64;
    fn give_back(&self, rest: u64);
    fn owed(&self) -> u64;
}

impl Owing for Deferral {
    fn none() -> Self {
        Self::new()
    }

    fn take(&self) -> u64 {
        self.take()
    }

    fn give_back(&self, rest: u64) {
        let after = self.give_back(rest, MOST);
        assert!(after >= rest);
    }

    fn owed(&self) -> u64 {
        self.owed()
    }
}

/// The wrong way: the deferred work is read first, and taken then.
struct InTwoSteps(AtomicU64);

impl Owing for InTwoSteps {
    fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    fn take(&self) -> u64 {
        let owed = self.0.load(Relaxed);
        self.0.store(0, Relaxed);
        owed
    }

    fn give_back(&self, rest: u64) {
        self.0.fetch_add(rest, Relaxed);
    }

    fn owed(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A pass that adds `delta` and does at most `most`; returns how much it did.
fn pass(owing: &impl Owing, delta: u64, most: u64) -> u64 {
    let total = owing.take() + delta;
    let done = total.min(most);
    owing.give_back(total - done);
    done
}

/// Two passes, and one that may not do anything.
fn passes_and_a_stop<O: Owing>() {
    model(|| {
        let owing = Arc::new(O::none());
        owing.give_back(90);
        let others = [(7, 50), (20, 0)].map(|(delta, most)| {
            let owing = Arc::clone(&owing);
            thread::spawn(move || pass(&*owing, delta, most))
        });
        let own = pass(&*owing, 3, 30);
        let done = others.into_iter().map(|other| other.join().unwrap());
        let done = own + done.sum::<u64>();
        assert_eq!(90 + 7 + 20 + 3, done + owing.owed(), "lost or done twice");
    });
}

#[test]
fn deferred_work_is_conserved() {
    passes_and_a_stop::<Deferral>();
}

#[test]
#[should_panic(expected = "lost or done twice")]
fn deferred_work_that_is_taken_in_two_steps_is_not() {
    passes_and_a_stop::<InTwoSteps>();
}

#[test]
fn what_is_owed_stays_below_its_bound_beside_others() {
    model(|| {
        let owing = Arc::new(Deferral::new());
        let other = {
            let owing = Arc::clone(&owing);
            thread::spawn(move || owing.give_back(80, 100))
        };
        let after = owing.give_back(70, 100);
        let others = other.join().unwrap();
        assert_eq!(owing.owed(), 100);
        assert!(after.max(others) == 100 && after.min(others) >= 70);
    });
}
