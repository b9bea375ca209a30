//! The locks of one inode with those who wait for them.
//!
//! Whoever changes the table also hands freed locks to waiters, oldest first, and brings the
//! waits-for graph up to date; a waiter never looks at the table itself.
//!
//! *Fairness.* A newcomer whose lock is free takes it, even when an older waiter (say, a writer
//! behind readers) wants the same bytes: refusing would be wrong without a wait, and with one
//! could deadlock programs that Linux lets run. But after [`OVERTAKEN_MAX`] such overtakings,
//! newcomers who can wait and hold nothing here let the older one go first, for as long as their
//! patience lasts.

use super::graph::LockGraph;
use super::lock::{HeldLock, LockOwner, LockRange, LockRequest, LockSpace};
use super::slot::Slot;
use super::table::LockTable;
use holdfast_types::{Errno, Result};
use std::sync::Arc;

/// Times that a waiter is overtaken before others let it go first.
pub(super) const OVERTAKEN_MAX: u32 = 16;

#[derive(Debug)]
struct Waiter {
    lock: HeldLock,
    slot: Arc<Slot>,
    /// Times a conflicting lock that was asked for later was granted first.
    overtaken: u32,
    /// Does it let overtaken waiters go first?
    patient: bool,
    /// Its edges in the graph; empty when it has none.
    blockers: Vec<LockOwner>,
}

impl Waiter {
    fn id(&self) -> usize {
        slot_id(&self.slot)
    }
}

/// Unique among the waiters alive.
fn slot_id(slot: &Arc<Slot>) -> usize {
    Arc::as_ptr(slot).addr()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    Yielding,
    Blocked,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// Not now, and the caller would not wait.
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

    /// Carries out a request, or queues it if `can_wait`.
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
            // A conversion gives up the old lock first, as flock(2) warns.
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

    /// Releases what the owner holds in `range`, and serves those who waited for it.
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

    /// Takes out all locks and all waiters, and tells these why.
    pub(super) fn end(&mut self, graph: &LockGraph, why: Errno) {
        self.table = LockTable::default();
        for waiter in self.waiters.drain(..) {
            leave_graph(graph, &waiter);
            // Unless it was cancelled just now.
            waiter.slot.settle(Err(why));
        }
    }

    /// Takes out a waiter that was cancelled.
    pub(super) fn withdraw(&mut self, graph: &LockGraph, slot: &Arc<Slot>) {
        if let Some(at) = self.position(slot) {
            let waiter = self.waiters.remove(at);
            leave_graph(graph, &waiter);
            // Somebody younger may have been letting it go first.
            self.serve(graph, waiter.lock.space, waiter.lock.range);
        }
    }

    /// Ends a waiter's patience with older ones.
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

    /// How does `lock` stand, asked for by somebody behind the first `ahead` waiters?
    fn standing(&self, lock: &HeldLock, patient: bool, ahead: usize) -> Standing {
        if !self.table.is_free(lock) {
            return Standing::Blocked;
        }
        let exhausted = |waiter: &Waiter| {
            waiter.overtaken >= OVERTAKEN_MAX
                && waiter.lock.conflicts(lock)
                && !waiter.slot.is_settled()
        };
        // Who holds a lock here may be the one the older waiter waits for.
        let yields = patient
            && self.waiters[..ahead].iter().any(exhausted)
            && !self.table.holds(lock.space, lock.owner);
        if yields {
            Standing::Yielding
        } else {
            Standing::Free
        }
    }

    fn note_overtaken(&mut self, lock: &HeldLock, ahead: usize) {
        for waiter in self.waiters[..ahead]
            .iter_mut()
            .filter(|w| w.lock.conflicts(lock))
        {
            waiter.overtaken = waiter.overtaken.saturating_add(1);
        }
    }

    /// After the locks of `space` in `changed` changed: grants what has become free, oldest
    /// first, and renews the graph's edges of those who go on waiting.
    fn serve(&mut self, graph: &LockGraph, space: LockSpace, changed: LockRange) {
        let mut changed = changed;
        let mut again = !self.waiters.is_empty();
        // A grant can weaken its owner's older locks and adds to what others wait for, so the
        // last round is one without a grant. Each round but that one shortens the queue.
        while again {
            again = false;
            let mut at = 0;
            while at < self.waiters.len() {
                let lock = self.waiters[at].lock;
                let affected = lock.space.meets(space) && lock.range.intersects(changed);
                if affected && self.reconsider(graph, at) {
                    let waiter = self.waiters.remove(at);
                    leave_graph(graph, &waiter);
                    changed = changed.hull(lock.range);
                    again = true;
                } else {
                    at += 1;
                }
            }
        }
    }

    /// Looks at one waiter again. True if it has got its verdict here and must leave the queue.
    fn reconsider(&mut self, graph: &LockGraph, at: usize) -> bool {
        let Waiter { lock, patient, .. } = self.waiters[at];
        if self.waiters[at].slot.is_settled() {
            // Cancelled: its own thread takes it out.
            return false;
        }
        match self.standing(&lock, patient, at) {
            Standing::Free => {
                let holder = (lock.space, lock.owner);
                let verdict = self.table.check_room(holder, lock.range, Some(lock.kind));
                let settled = self.waiters[at].slot.settle(verdict);
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
                !update_graph(graph, &self.table, waiter) && waiter.slot.settle(Err(Errno::EDEADLK))
            }
        }
    }
}

/// Brings the edges of a blocked waiter up to date. False if it would wait for itself.
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
