//! Wakes the session's watch.
//!
//! # Locking
//! `over` is a leaf, taken by the watch between two looks and by callers of [`Wakeup::wake`].

use parking_lot::{Condvar, Mutex};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Interval between two looks.
const TICK: Duration = Duration::from_millis(1);

/// Wakes the watch, and ends it.
#[derive(Default)]
pub(super) struct Wakeup {
    /// Cleared by the watch when there is nothing to look at.
    pub(super) awake: AtomicBool,
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

    /// Waits for the next look of the watch; `false`: the session is over.
    pub(super) fn wait(&self) -> bool {
        let mut over = self.over.lock();
        while !*over && !self.awake.load(Ordering::SeqCst) {
            self.signal.wait(&mut over);
        }
        if !*over {
            self.signal.wait_for(&mut over, TICK);
        }
        !*over
    }
}
