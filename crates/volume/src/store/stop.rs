//! Stopping all writes: after an error that leaves the state in memory in doubt, or after a panic.
//!
//! *Invariant.* Half-applied state is never committed. The thread that left it stops the store
//! while it still excludes a commit point (by the barrier, or by the commit lock). A commit checks
//! `stopped` after it has closed the barrier.

use std::mem;
use std::sync::{Arc, OnceLock};

use holdfast_core::store::Failure;

use super::commit::Progress;
use super::error_callback::ErrorCallback;
use crate::error::{Error, Result};

/// Whether the store has stopped, and what reports that.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Why nothing is written any more.
    stopped: OnceLock<String>,
    /// The failure that callers see, if that was a failure.
    pub(super) failure: Arc<Failure>,
    pub(super) error_callback: ErrorCallback,
    /// What waiters wait for.
    pub(super) progress: Progress,
}

impl Stop {
    pub(super) fn running(&self) -> Result<()> {
        match self.stopped.get() {
            Some(reason) => Err(Error::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    /// Stops writing for a reason that is not a failure.
    pub(super) fn end(&self, reason: &str) {
        self.stopped.get_or_init(|| reason.to_owned());
    }

    /// Stops writing; returns the error.
    pub(super) fn fail(&self, error: Error) -> Error {
        // [`Error::Stopped`] is not a reason.
        if self.stopped.get().is_none() {
            let reason = self.stopped.get_or_init(|| error.to_string());
            self.failure.close_with(error.errno());
            self.error_callback.report(reason);
        }
        // Wake waiters: there will be no progress.
        self.progress.step();
        error
    }

    /// Runs `work`, which must complete: if it fails or panics, the store is stopped before the
    /// caller releases its locks.
    #[inline]
    pub(super) fn whole<R>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let unfinished = Unfinished { stop: self, what };
        let done = work();
        mem::forget(unfinished);
        done.map_err(|error| self.fail(error))
    }
}

/// Unwind guard of work that must complete.
struct Unfinished<'s> {
    stop: &'s Stop,
    what: &'static str,
}

impl Drop for Unfinished<'_> {
    #[cold]
    fn drop(&mut self) {
        self.stop.fail(Error::Panicked(self.what));
    }
}
