//! The wake-up of the thread that follows memory.
//!
//! *Invariants.* Only `state` decides whether a thread is woken: [`Wakeup::moved`] replaces
//! `ASLEEP` by one exchange, and [`Wakeup::sleep`] replaces `QUIET` by one. The later of the two
//! sees the other. Relaxed suffices for one word.
//!
//! *Locking.* `stop` is a leaf. The follower holds it from its exchange until it waits on
//! `changed`, and a notifier takes it after its own exchange. So the notification cannot come
//! between the two.

use crate::primitive::{AtomicU8, Condvar, Mutex, Ordering::Relaxed};
use std::time::Duration;

/// Nothing was added since the follower last looked.
const QUIET: u8 = 0;
/// Something was added.
const MOVED: u8 = 1;
/// The follower sleeps until something is added.
const ASLEEP: u8 = 2;

/// Signals from threads that add memory to the thread that follows it.
#[derive(Debug)]
pub(crate) struct Wakeup {
    state: AtomicU8,
    /// Is the follower to end?
    stop: Mutex<bool>,
    changed: Condvar,
}

impl Wakeup {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(QUIET),
            stop: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Something was added: wakes the follower if it sleeps.
    #[inline]
    pub(crate) fn moved(&self) {
        // Between two looks of the follower all calls but the first only read the line.
        if self.state.load(Relaxed) != MOVED && self.state.swap(MOVED, Relaxed) == ASLEEP {
            self.notify();
        }
    }

    /// Was anything added since the last call?
    pub(crate) fn take(&self) -> bool {
        self.state.swap(QUIET, Relaxed) == MOVED
    }

    /// Sleeps until something is added; returns at once if anything was since [`Self::take`].
    /// `false`: the follower is to end.
    pub(crate) fn sleep(&self) -> bool {
        let mut stop = self.stop.lock();
        // If this fails something was added.
        let _ = (self.state).compare_exchange(QUIET, ASLEEP, Relaxed, Relaxed);
        while !*stop && self.state.load(Relaxed) == ASLEEP {
            self.changed.wait(&mut stop);
        }
        !*stop
    }

    /// Waits for `time`. `false`: the follower is to end.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let mut stop = self.stop.lock();
        if !*stop {
            self.changed.wait_for(&mut stop, time);
        }
        !*stop
    }

    /// Makes the follower end.
    pub(crate) fn stop(&self) {
        *self.stop.lock() = true;
        self.changed.notify_one();
    }

    /// Called after the follower has ended; another may start.
    pub(crate) fn restart(&self) {
        *self.stop.lock() = false;
    }

    #[cold]
    fn notify(&self) {
        drop(self.stop.lock());
        self.changed.notify_one();
    }
}
