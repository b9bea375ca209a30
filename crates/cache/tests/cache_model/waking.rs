//! The wake-up of the thread that follows memory, under every interleaving: it sleeps for ever in
//! none.

use crate::model;
use crate::primitive::{AtomicU8, Condvar, Mutex, Ordering::Relaxed};
use crate::wakeup::Wakeup;
use loom::sync::Arc;
use loom::thread;

/// An interface that wakes a follower.
trait Wakes: Send + Sync + 'static {
    fn new() -> Self;
    fn moved(&self);
    fn take(&self) -> bool;
    fn sleep(&self) -> bool;
}

impl Wakes for Wakeup {
    fn new() -> Self {
        Self::new()
    }

    fn moved(&self) {
        self.moved();
    }

    fn take(&self) -> bool {
        self.take()
    }

    fn sleep(&self) -> bool {
        self.sleep()
    }
}

/// The wrong way: two words, each stored by one side and then loaded by the other.
struct TwoWords {
    moved: AtomicU8,
    asleep: AtomicU8,
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wakes for TwoWords {
    fn new() -> Self {
        Self {
            moved: AtomicU8::new(0),
            asleep: AtomicU8::new(0),
            rung: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    fn moved(&self) {
        if self.moved.load(Relaxed) == 0 {
            self.moved.store(1, Relaxed);
            if self.asleep.load(Relaxed) == 1 {
                *self.rung.lock() = true;
                self.changed.notify_one();
            }
        }
    }

    fn take(&self) -> bool {
        self.moved.swap(0, Relaxed) == 1
    }

    fn sleep(&self) -> bool {
        let mut rung = self.rung.lock();
        self.asleep.store(1, Relaxed);
        while !*rung && self.moved.load(Relaxed) == 0 {
            self.changed.wait(&mut rung);
        }
        self.asleep.store(0, Relaxed);
        *rung = false;
        true
    }
}

/// A follower that sleeps until it has seen the additions of `adders` threads. A lost wake-up
/// leaves all threads blocked, which loom reports.
fn addition_wakes<W: Wakes>(adders: usize) {
    model(move || {
        let wakeup = Arc::new(W::new());
        let adders: Vec<_> = (0..adders)
            .map(|_| {
                let wakeup = Arc::clone(&wakeup);
                thread::spawn(move || wakeup.moved())
            })
            .collect();
        assert!(wakeup.sleep(), "the follower was not told to end");
        assert!(wakeup.take(), "it woke without an addition");
        adders.into_iter().for_each(|adder| adder.join().unwrap());
    });
}

#[test]
fn an_addition_wakes_the_follower() {
    addition_wakes::<Wakeup>(1);
    addition_wakes::<Wakeup>(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_addition_does_not_wake_a_follower_by_two_words() {
    addition_wakes::<TwoWords>(1);
}

#[test]
fn a_follower_ends_when_it_is_told_whether_it_sleeps_or_not() {
    model(|| {
        let wakeup = Arc::new(Wakeup::new());
        let other = {
            let wakeup = Arc::clone(&wakeup);
            thread::spawn(move || wakeup.stop())
        };
        assert!(!wakeup.sleep());
        assert!(!wakeup.pause(std::time::Duration::ZERO));
        other.join().unwrap();
        wakeup.restart();
        wakeup.moved();
        assert!(wakeup.sleep());
    });
}
