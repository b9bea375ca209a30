//! The locks of one inode and its waiters.
//!
//! The thread that changes the table also grants freed locks to waiters, oldest first, and updates
//! the waits-for graph; a waiter does not access the table itself.
//!
//! *Fairness.* A new request for a free lock is granted, even when an older waiter (for example, a
//! writer behind readers) wants the same bytes. A refusal would violate POSIX without a wait, and
//! with one could deadlock programs that run on Linux. But after a waiter was overtaken
//! [`OVERTAKEN_MAX`] times, a new request that can wait, of an owner without a lock here, yields to
//! it for at most [`YIELD_MAX`](super::slot::YIELD_MAX).

use super::graph::LockGraph;
use super::lock::{HeldLock, LockOwner, LockRange, LockRequest, LockSpace};
use super::slot::Slot;
use super::table::LockTable;
use holdfast_types::{Errno, Result};
use std::sync::Arc;

/// How often a waiter is overtaken before new requests yield to it.
pub(super) const OVERTAKEN_MAX: u32 = 16;

#[derive(Debug)]
struct Waiter {
    lock: HeldLock,
    slot: Arc<Slot>,
    /// How often a later request for a conflicting lock was granted first.
    overtaken: u32,
    /// Does it yield to overtaken waiters?
    patient: bool,
    /// Its edges in the graph; empty if it has none.
    blockers: Vec<LockOwner>,
}

impl Waiter {
    fn id(&self) -> usize {
        slot_id(&self.slot)
    }
}

/// Unique among the live waiters.
fn slot_id(slot: &Arc<Slot>) -> usize {
    Arc::as_ptr(slot).addr()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    Yielding,
    Blocked,
}

/// The result of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// The lock is not free, and the caller does not wait.
    Refused,
    /// The caller must sleep on this slot.
    Queued(Arc<Slot>),
}

/// Table and waiters of one inode.
#[derive(Debug, Default)]
pub(super) struct LockQueue {
    pub(super) table: LockTable,
    /// Oldest first.
    waiters: Vec<Waiter>,
}

impl LockQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty() && self.waiters.is_empty()
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Performs a request, or queues it if `can_wait`.
    ///
    /// # Errors
    /// `EINVAL` for a bad range, `ENOLCK` when there are too many locks, `EDEADLK`.
    pub(super) fn request(
        &mut self,
        graph: &LockGraph,
        request: &LockRequest,
        can_wait: bool,
    ) -> Result<Answer> {
        let range = request.range.within(request.space)?;
        let LockRequest {
            owner,
            space,
            kind,
            pid,
            ..
        } = *request;
        self.table.check_room((space, owner), range, kind)?;
        let Some(kind) = kind else {
            self.release(graph, space, owner, range);
            return Ok(Answer::Done);
        };
        let lock = HeldLock {
            kind,
            range,
            pid,
            space,
            owner,
        };
        if space == LockSpace::Flock {
            if self.table.flock_of(owner) == Some(kind) {
                return Ok(Answer::Done);
            }
            // A conversion releases the old lock first, as flock(2) documents.
            self.release(graph, space, owner, range);
        }
        match self.standing(&lock, can_wait, self.waiters.len()) {
            Standing::Free => {
                self.note_overtaken(&lock, self.waiters.len());
                self.table.grant(&lock);
                self.serve(graph, space, range);
                Ok(Answer::Done)
            }
            _ if !can_wait => Ok(Answer::Refused),
            standing => self.enqueue(graph, lock, standing).map(Answer::Queued),
        }
    }

    /// Releases the owner's locks in `range`, and grants what became free.
    pub(super) fn release(
        &mut self,
        graph: &LockGraph,
        space: LockSpace,
        owner: LockOwner,
        range: LockRange,
    ) {
        if self.table.release(space, owner, range) {
            self.serve(graph, space, range);
        }
    }

    /// Removes all locks and all waiters, with the error `why` for these.
    pub(super) fn end(&mut self, graph: &LockGraph, why: Errno) {
        self.table = LockTable::default();
        for waiter in self.waiters.drain(..) {
            leave_graph(graph, &waiter);
            // Does nothing if it was cancelled concurrently.
            waiter.slot.complete(Err(why));
        }
    }

    /// Removes a cancelled waiter.
    pub(super) fn withdraw(&mut self, graph: &LockGraph, slot: &Arc<Slot>) {
        if let Some(at) = self.position(slot) {
            let waiter = self.waiters.remove(at);
            leave_graph(graph, &waiter);
            // A younger waiter may have been yielding to it.
            self.serve(graph, waiter.lock.space, waiter.lock.range);
        }
    }

    /// A waiter stops yielding to older ones.
    pub(super) fn insist(&mut self, graph: &LockGraph, slot: &Arc<Slot>) {
        if let Some(at) = self.position(slot) {
            let waiter = &mut self.waiters[at];
            waiter.patient = false;
            let HeldLock { space, range, .. } = waiter.lock;
            self.serve(graph, space, range);
        }
    }

    fn position(&self, slot: &Arc<Slot>) -> Option<usize> {
        self.waiters
            .iter()
            .position(|waiter| Arc::ptr_eq(&waiter.slot, slot))
    }

    fn enqueue(
        &mut self,
        graph: &LockGraph,
        lock: HeldLock,
        standing: Standing,
    ) -> Result<Arc<Slot>> {
        let slot = Arc::new(Slot::new());
        let mut waiter = Waiter {
            lock,
            slot: Arc::clone(&slot),
            overtaken: 0,
            patient: true,
            blockers: Vec::new(),
        };
        slot.set_yielding(standing == Standing::Yielding);
        if standing == Standing::Blocked && !update_graph(graph, &self.table, &mut waiter) {
            return Err(Errno::EDEADLK);
        }
        self.waiters.push(waiter);
        Ok(slot)
    }

    /// The standing of a request for `lock` behind the first `ahead` waiters.
    fn standing(&self, lock: &HeldLock, patient: bool, position: usize) -> Standing {
        if !self.table.is_free(lock) {
            return Standing::Blocked;
        }
        let exhausted = |waiter: &Waiter| {
            waiter.overtaken >= OVERTAKEN_MAX
                && waiter.lock.conflicts(lock)
                && !waiter.slot.is_settled()
        };
        // The older waiter may be waiting for a lock that this owner holds.
        let yields = patient
            && self.waiters[..position].iter().any(exhausted)
            && !self.table.holds(lock.space, lock.owner);
        if yields {
            Standing::Yielding
        } else {
            Standing::Free
        }
    }

    fn note_overtaken(&mut self, lock: &HeldLock, position: usize) {
        for waiter in self.waiters[..position]
            .iter_mut()
            .filter(|w| w.lock.conflicts(lock))
        {
            waiter.overtaken = waiter.overtaken.saturating_add(1);
        }
    }

    /// The locks of `space` in `changed` have changed: grants what has become free, oldest first,
    /// and updates the graph's edges of the remaining waiters.
    fn serve(&mut self, graph: &LockGraph, space: LockSpace, changed: LockRange) {
        let mut changed = changed;
        let mut repeat = !self.waiters.is_empty();
        // A grant can weaken its owner's older locks, and adds conflicts for other waiters. So the
        // loop ends with a round without a grant. Each other round shortens the queue.
        while repeat {
            repeat = false;
            let mut at = 0;
            while at < self.waiters.len() {
                let lock = self.waiters[at].lock;
                let affected = lock.space.meets(space) && lock.range.intersects(changed);
                if affected && self.reconsider(graph, at) {
                    let waiter = self.waiters.remove(at);
                    leave_graph(graph, &waiter);
                    changed = changed.hull(lock.range);
                    repeat = true;
                } else {
                    at += 1;
                }
            }
        }
    }

    /// Checks one waiter again. Returns true if it was settled and must leave the queue.
    fn reconsider(&mut self, graph: &LockGraph, at: usize) -> bool {
        let Waiter { lock, patient, .. } = self.waiters[at];
        if self.waiters[at].slot.is_settled() {
            // Cancelled: its own thread removes it.
            return false;
        }
        match self.standing(&lock, patient, at) {
            Standing::Free => {
                let holder = (lock.space, lock.owner);
                let verdict = self.table.check_room(holder, lock.range, Some(lock.kind));
                let settled = self.waiters[at].slot.complete(verdict);
                if settled && verdict.is_ok() {
                    self.note_overtaken(&lock, at);
                    self.table.grant(&lock);
                }
                settled
            }
            Standing::Yielding => {
                let waiter = &mut self.waiters[at];
                leave_graph(graph, waiter);
                waiter.blockers.clear();
                waiter.slot.set_yielding(true);
                false
            }
            Standing::Blocked => {
                let waiter = &mut self.waiters[at];
                waiter.slot.set_yielding(false);
                !update_graph(graph, &self.table, waiter)
                    && waiter.slot.complete(Err(Errno::EDEADLK))
            }
        }
    }
}

/// Updates the edges of a blocked waiter. False if they would close a cycle.
fn update_graph(graph: &LockGraph, table: &LockTable, waiter: &mut Waiter) -> bool {
    if waiter.lock.space != LockSpace::Posix {
        return true;
    }
    let blockers = table.posix_blockers(&waiter.lock);
    if blockers == waiter.blockers {
        return true;
    }
    let acyclic = graph.wait(waiter.id(), waiter.lock.owner, &blockers);
    waiter.blockers = if acyclic { blockers } else { Vec::new() };
    acyclic
}

fn leave_graph(graph: &LockGraph, waiter: &Waiter) {
    if !waiter.blockers.is_empty() {
        graph.done(waiter.id(), waiter.lock.owner);
    }
}
