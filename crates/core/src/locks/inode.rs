//! The locks of an inode.

use super::cancel::Cancel;
use super::graph::LockGraph;
use super::lock::{HeldLock, LockKind, LockOwner, LockRange, LockRequest, LockSpace};
use super::queue::{Answer, LockQueue};
use super::slot::{Slot, Woken};
use holdfast_types::{Errno, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// All locks of one inode, and its waiters. Allocated when the inode is first locked.
#[derive(Debug, Default)]
pub(crate) struct InodeLocks {
    /// Guards table and waiters. Never held while a caller sleeps.
    queue: Mutex<LockQueue>,
}

impl InodeLocks {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// No lock and no waiter. The result is stable only if the caller prevents other threads from
    /// reaching the inode.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }

    /// The first lock (by start) that conflicts with this lock of `owner`.
    ///
    /// # Errors
    /// `EINVAL` if the range ends before it starts.
    pub(crate) fn conflict(
        &self,
        owner: LockOwner,
        space: LockSpace,
        kind: LockKind,
        range: LockRange,
    ) -> Result<Option<HeldLock>> {
        let range = range.within(space)?;
        let wanted = HeldLock {
            kind,
            range,
            pid: 0,
            space,
            owner,
        };
        Ok(self.queue.lock().table.conflict(&wanted))
    }

    /// Takes, converts or releases a lock; with `wait`, sleeps until it is granted.
    ///
    /// An flock conversion releases the old lock first, and does not restore it on error.
    ///
    /// # Errors
    /// - `EAGAIN`: another owner's lock conflicts, and there was no `wait`.
    /// - `EINTR`: `wait` was cancelled.
    /// - `EDEADLK`: waiting for it (POSIX locks only) would close a cycle of waiting owners.
    /// - `EINVAL`: the range ends before it starts.
    /// - `ENOLCK`: too many locks on this inode.
    pub(crate) fn set(
        &self,
        graph: &LockGraph,
        request: &LockRequest,
        wait: Option<&Cancel>,
    ) -> Result<()> {
        let answer = self.change(graph, |queue| queue.request(graph, request, wait.is_some()))?;
        match (answer, wait) {
            (Answer::Done, _) => Ok(()),
            (Answer::Queued(slot), Some(cancel)) => self.sleep(graph, &slot, cancel),
            (Answer::Refused | Answer::Queued(_), _) => Err(Errno::EAGAIN),
        }
    }

    /// Releases all locks of an owner in one family, as close(2) does.
    pub(crate) fn release(&self, graph: &LockGraph, owner: LockOwner, space: LockSpace) {
        self.change(graph, |queue| {
            queue.release(graph, space, owner, LockRange::WHOLE)
        });
    }

    /// Releases all locks of all owners, and ends all waits with `EIO`: the inode is freed, or the
    /// file system revoked.
    pub(crate) fn end(&self, graph: &LockGraph) {
        self.change(graph, |queue| queue.end(graph, Errno::EIO));
    }

    /// Changes the queue and counts the locks that were added or removed.
    fn change<R>(&self, graph: &LockGraph, change: impl FnOnce(&mut LockQueue) -> R) -> R {
        let mut queue = self.queue.lock();
        let before = queue.table.len() as i64;
        let result = change(&mut queue);
        let change = queue.table.len() as i64 - before;
        if change != 0 {
            graph.held.add(change);
        }
        result
    }

    fn sleep(&self, graph: &LockGraph, slot: &Arc<Slot>, cancel: &Cancel) -> Result<()> {
        if !cancel.register(slot) {
            slot.complete(Err(Errno::EINTR));
        }
        let verdict = loop {
            match slot.wait() {
                Woken::Settled(verdict) => break verdict,
                Woken::TimedOut => self.change(graph, |queue| queue.insist(graph, slot)),
            }
        };
        cancel.forget(slot);
        if verdict == Err(Errno::EINTR) {
            self.change(graph, |queue| queue.withdraw(graph, slot));
        }
        verdict
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.queue.lock().waiting()
    }
}
