//! The signal that keeps the watch awake.
//!
//! # Invariants
//! While `awake == false` there is nothing to look at, or a thread is about to call
//! [`Wakeup::wake`]. The watch clears `awake` first and then looks once more; other threads publish
//! their state before `wake` reads `awake` (all SeqCst).
//!
//! # Locking
//! `over` is a leaf, taken by the watch between two looks and by callers of `wake`.

use parking_lot::{Condvar, Mutex};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Interval between two looks.
const TICK: Duration = Duration::from_millis(1);
/// Empty looks before the watch sleeps.
const EMPTY_LOOKS: u32 = 20;

/// Wakes the watch, and ends it.
#[derive(Default)]
pub(super) struct Wakeup {
    awake: AtomicBool,
    /// Guards the end of the session.
    over: Mutex<bool>,
    signal: Condvar,
}

impl Wakeup {
    /// There is something to look at.
    pub(super) fn wake(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            let _over = self.over.lock();
            self.awake.store(true, Ordering::SeqCst);
            self.signal.notify_one();
        }
    }

    /// The session is over.
    pub(super) fn close(&self) {
        *self.over.lock() = true;
        self.signal.notify_one();
    }

    /// Calls `look` each millisecond while it is awake, until the session is over. `look` returns
    /// whether it must be repeated.
    pub(super) fn run(&self, look: impl Fn() -> bool) {
        let mut seen_nothing = 0;
        let mut over = self.over.lock();
        while !*over {
            if self.awake.load(Ordering::SeqCst) {
                self.signal.wait_for(&mut over, TICK);
            } else {
                self.signal.wait(&mut over);
                continue;
            }
            drop(over);
            seen_nothing = if look() { 0 } else { seen_nothing + 1 };
            if seen_nothing >= EMPTY_LOOKS {
                self.awake.store(false, Ordering::SeqCst);
                if look() {
                    self.awake.store(true, Ordering::SeqCst);
                }
                seen_nothing = 0;
            }
            over = self.over.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    #[test]
    fn the_watch_falls_asleep_and_can_be_woken_and_ended_in_either_state() {
        let wakeup = Arc::new(Wakeup::default());
        let owner = wakeup.clone();
        let thread = thread::spawn(move || owner.run(|| false));
        for _ in 0..3 {
            wakeup.wake();
            assert!(wakeup.awake.load(Ordering::SeqCst));
            while wakeup.awake.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        wakeup.close();
        thread.join().unwrap();
    }
}
