//! Where one waiter sleeps until its fate is known.
//!
//! The verdict is given once, under the slot's own mutex, by whoever comes first: the thread that
//! grants the lock, the one that finds a deadlock, or the one that cancels. So no wake-up is lost,
//! and a lock is never granted to a waiter that has left.

use holdfast_types::Result;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a waiter lets an older one go first when it could have its lock at once.
///
/// There must be an end: the older one may be waiting, by ways unknown to us, for this one.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Other locks are in the way.
    Blocked,
    /// Only an older waiter is.
    Yielding,
    Settled(Result<()>),
}

#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

/// Why a sleeper woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Settled(Result<()>),
    OutOfPatience,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::Blocked),
            changed: Condvar::new(),
        }
    }

    /// Gives the verdict. False if it had been given before: then that one stands.
    pub(super) fn settle(&self, verdict: Result<()>) -> bool {
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

    /// Tells the sleeper whether it is only being polite.
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

    /// Sleeps until there is a verdict or politeness has lasted for [`PATIENCE`].
    pub(super) fn wait(&self) -> Woken {
        let mut deadline = None;
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Settled(verdict) => return Woken::Settled(verdict),
                State::Blocked => self.changed.wait(&mut state),
                State::Yielding => {
                    let until = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
                    let timeout = self.changed.wait_until(&mut state, until);
                    if timeout.timed_out() && *state == State::Yielding {
                        return Woken::OutOfPatience;
                    }
                }
            }
        }
    }
}
