//! The slot on which one waiter sleeps until its request is settled.
//!
//! The verdict is set once, under the slot's mutex, by the first thread that grants the lock, finds
//! a deadlock or cancels the wait. So no wake-up is lost, and a lock is never granted to a waiter
//! that has left.

use holdfast_types::Result;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a waiter yields to an older one although its lock is free.
///
/// It is limited because the older one may depend, in ways unknown here, on this one.
pub(super) const YIELD_MAX: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Other locks conflict.
    Blocked,
    /// The lock is free, but an older waiter goes first.
    Yielding,
    Settled(Result<()>),
}

#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

/// Why a waiter woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Settled(Result<()>),
    TimedOut,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::Blocked),
            changed: Condvar::new(),
        }
    }

    /// Sets the verdict. Returns false if there was one before: then that one stays.
    pub(super) fn complete(&self, verdict: Result<()>) -> bool {
        let mut state = self.state.lock();
        if matches!(*state, State::Settled(_)) {
            return false;
        }
        *state = State::Settled(verdict);
        self.changed.notify_one();
        true
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(*self.state.lock(), State::Settled(_))
    }

    /// Tells the waiter whether it only yields.
    pub(super) fn set_yielding(&self, yielding: bool) {
        let mut state = self.state.lock();
        let next = if yielding {
            State::Yielding
        } else {
            State::Blocked
        };
        if !matches!(*state, State::Settled(_)) && *state != next {
            *state = next;
            self.changed.notify_one();
        }
    }

    /// Sleeps until there is a verdict, or until it has yielded for [`YIELD_MAX`].
    pub(super) fn wait(&self) -> Woken {
        let mut deadline = None;
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Settled(verdict) => return Woken::Settled(verdict),
                State::Blocked => self.changed.wait(&mut state),
                State::Yielding => {
                    let until = *deadline.get_or_insert_with(|| Instant::now() + YIELD_MAX);
                    let timeout = self.changed.wait_until(&mut state, until);
                    if timeout.timed_out() && *state == State::Yielding {
                        return Woken::TimedOut;
                    }
                }
            }
        }
    }
}
