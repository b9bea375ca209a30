//! One thread that serves requests: its crew, its counters, its processor.

use super::{
    counters::Counters,
    policy::ReplyPolicy,
    pool::{RequestWait, WorkerPool},
    service::Service,
    timing::Sampler,
};
use holdfast_types::{Errno, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Arc;

/// A thread's place in its crew, for as long as it serves.
pub(crate) struct Worker {
    pub(crate) service: Arc<Service>,
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) counters: Arc<Counters>,
    /// The processor whose requests it serves, if they are one processor's.
    processor: Option<u16>,
    /// Under which replies are committed, if they are committed under a policy of their own.
    policy: Option<ReplyPolicy>,
    sampler: Sampler,
    /// Has it left its processor, to do what lasts?
    away: bool,
}

impl Worker {
    pub(crate) fn new(
        service: Arc<Service>,
        pool: Arc<WorkerPool>,
        processor: Option<u16>,
    ) -> Self {
        // Over `/dev/fuse` nothing tells, without another call, whether a request is there.
        let policy = processor.and_then(|_| ReplyPolicy::of_this_thread(&service.watch));
        Self {
            counters: service.registry.enlist(),
            service,
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

    /// The request is one of this operation.
    pub(crate) fn count(&mut self, opcode: u32) {
        self.counters.request(opcode);
        self.sampler.begin(opcode);
    }

    /// The reply is about to be committed.
    pub(crate) fn before_reply(&mut self) {
        self.sampler.end(&self.counters);
        self.pool.end();
        if !self.away
            && let Some(policy) = &mut self.policy
        {
            policy.before_reply();
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

    /// Nothing is there: the thread is about to sleep.
    pub(crate) fn before_wait(&self) {
        if let Some(policy) = &self.policy {
            policy.before_wait();
        }
    }

    /// The request surely lasts: another thread stands ready if there is one to be had, and the
    /// processor is left to quick requests.
    pub(super) fn before_long(&mut self) {
        // First, because threads inherit the policy.
        self.before_wait();
        if !self.away {
            self.away = self.processor.is_some() && self.service.leave_processor();
        }
        self.pool.stand_in(&self.service);
    }

    /// The request waits for another one: an unlock, perhaps for ever, or a write of the kernel's.
    ///
    /// # Errors
    /// `ENOLCK`: so many wait already, or there is no thread to bring that in.
    pub(super) fn before_request_wait(&mut self) -> Result<RequestWait> {
        let wait = RequestWait::new(&self.service, &self.pool).ok_or(Errno::ENOLCK)?;
        self.before_long();
        if self.pool.has_another() {
            Ok(wait)
        } else {
            Err(Errno::ENOLCK)
        }
    }
}

/// Binds the calling thread to processor `qid`; one that is not there yet leaves it free.
pub(crate) fn pin(qid: u16) {
    let mut set = CpuSet::new();
    if usize::from(qid) < CpuSet::MAX_CPU {
        set.set(qid.into());
        // Refused, the thread stays where it is: slower, not wrong.
        let _ = sched_setaffinity(None, &set);
    }
}
