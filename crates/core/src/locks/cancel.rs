//! A token that cancels waits.

use super::slot::Slot;
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Cancels waits for locks: a front end keeps one clone and passes the other to the call that may
/// wait. A cancelled token stays cancelled; a wait that was granted before stays granted.
#[derive(Clone, Default)]
pub struct Cancel {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    /// The slots of the threads that wait with this token.
    sleepers: Vec<Arc<Slot>>,
}

impl Cancel {
    /// A token not yet cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every wait under this token, present and future, with `EINTR`.
    pub fn cancel(&self) {
        let sleepers = {
            let mut state = self.state.lock();
            state.cancelled = true;
            std::mem::take(&mut state.sleepers)
        };
        for sleeper in sleepers {
            sleeper.complete(Err(Errno::EINTR));
        }
    }

    /// Has [`Cancel::cancel`] been called?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled
    }

    /// Settles `slot` when the token is cancelled. Returns false and does nothing if it was
    /// cancelled before.
    pub(super) fn register(&self, slot: &Arc<Slot>) -> bool {
        let mut state = self.state.lock();
        if !state.cancelled {
            state.sleepers.push(Arc::clone(slot));
        }
        !state.cancelled
    }

    /// Undoes [`Cancel::register`].
    pub(super) fn forget(&self, slot: &Arc<Slot>) {
        self.state
            .lock()
            .sleepers
            .retain(|sleeper| !Arc::ptr_eq(sleeper, slot));
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}
