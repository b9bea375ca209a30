//! What ends all writing: an error that leaves in doubt what memory holds, or a panic.
//!
//! *Invariant.* State that is only half changed is never committed: the store is stopped by the thread that changed it,
//! while that thread still holds what keeps a commit's cut away (the gate, or the commit's turn), and a commit looks
//! whether the store is stopped behind its cut.

use std::mem;

use super::Inner;
use crate::{Error, Result};

impl Inner {
    /// Has nothing stopped it?
    pub(super) fn running(&self) -> Result<()> {
        match self.stopped.get() {
            Some(reason) => Err(Error::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    /// Nothing is written from now on, for this reason, which is no failure.
    pub(super) fn end(&self, reason: &str) {
        self.stopped.get_or_init(|| reason.to_owned());
    }

    /// Nothing is written from now on; gives the error back.
    pub(super) fn stop(&self, error: Error) -> Error {
        self.fail(&error);
        error
    }

    /// As [`stop`](Self::stop).
    pub(super) fn fail(&self, error: &Error) {
        // One that only repeats it is no reason.
        if self.stopped.get().is_none() {
            let reason = self.stopped.get_or_init(|| error.to_string());
            self.failure.latch(error.errno());
            self.error_callback.ring(reason);
        }
        // Nobody waits for what will not come.
        self.progress.step();
    }

    /// Does work that must be done whole: if it fails or panics, the store is stopped before the caller lets go of
    /// what it holds.
    #[inline]
    pub(super) fn whole<R>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let unfinished = Unfinished { store: self, what };
        let done = work();
        mem::forget(unfinished);
        done.map_err(|error| self.stop(error))
    }
}

/// Work under way that must be done whole: dropped by a panic, it stops the store.
struct Unfinished<'s> {
    store: &'s Inner,
    what: &'static str,
}

impl Drop for Unfinished<'_> {
    #[cold]
    fn drop(&mut self) {
        self.store.fail(&Error::Panicked(self.what));
    }
}
