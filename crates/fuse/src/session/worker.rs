//! One serving thread: its pool, its counters, its processor.

use super::{
    counters::Counters,
    policy::ReplyPolicy,
    pool::{RequestWait, WorkerPool},
    timing::Sampler,
};
use holdfast_types::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Arc;

/// A serving thread.
pub(crate) struct Worker {
    pool: Arc<WorkerPool>,
    pub(super) counters: Arc<Counters>,
    /// The processor of its queue; `None` for `/dev/fuse`.
    processor: Option<u16>,
    /// The policy that replies are committed under, if it is usable.
    policy: Option<ReplyPolicy>,
    sampler: Sampler,
    /// Has it left its processor for a long request?
    away: bool,
}

impl Worker {
    pub(crate) fn new(pool: Arc<WorkerPool>, processor: Option<u16>) -> Self {
        let service = &pool.service;
        // With `/dev/fuse` only another system call would tell whether a request has arrived.
        let policy = processor.and_then(|_| ReplyPolicy::of_this_thread(&service.policy_slots));
        Self {
            counters: service.registry.enlist(),
            pool,
            processor,
            policy,
            sampler: Sampler::default(),
            away: false,
        }
    }

    /// A request was taken.
    pub(crate) fn begin(&self) {
        self.pool.begin();
        self.counters.begin();
    }

    /// Counts the request.
    pub(crate) fn count(&mut self, opcode: u32) {
        self.counters.request(opcode);
        self.sampler.begin(opcode);
    }

    /// The reply is about to be committed.
    pub(crate) fn before_reply(&mut self) {
        self.sampler.end(&self.counters.operations);
        self.pool.end();
        if !self.away
            && let Some(policy) = &mut self.policy
        {
            policy.before_reply(&self.pool.service.wakeup);
        }
    }

    /// The reply was committed.
    pub(crate) fn end(&mut self) {
        self.counters.end();
        if self.away {
            self.away = false;
            self.processor.inspect(|&processor| pin(processor));
        }
    }

    /// There is no request: the thread is about to sleep.
    pub(crate) fn before_wait(&self) {
        if let Some(policy) = &self.policy {
            policy.before_wait();
        }
    }

    /// The request takes long: ensures that another thread is ready, and leaves the processor to
    /// others.
    pub(super) fn before_long(&mut self) {
        // First, because new threads inherit the policy.
        self.before_wait();
        if !self.away {
            self.away = self.processor.is_some() && self.pool.service.leave_processor();
        }
        self.pool.stand_in();
    }

    /// The request waits for another one: an unlock, perhaps forever, or a write of the kernel's.
    ///
    /// # Errors
    /// `ENOLCK`: the limit of waits is reached, or no thread could serve the other request.
    pub(super) fn before_request_wait(&mut self) -> Result<RequestWait, Errno> {
        let wait = RequestWait::new(&self.pool).ok_or(Errno::ENOLCK)?;
        self.before_long();
        if self.pool.has_another() {
            Ok(wait)
        } else {
            Err(Errno::ENOLCK)
        }
    }
}

/// Binds the calling thread to processor `qid`, if that exists.
pub(crate) fn pin(qid: u16) {
    let mut set = CpuSet::new();
    if usize::from(qid) < CpuSet::MAX_CPU {
        set.set(qid.into());
        // On an error the thread runs elsewhere: slower, but correct.
        let _ = sched_setaffinity(None, &set);
    }
}
