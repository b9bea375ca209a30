//! State shared by all threads of a session: their counters, their limits, and the end.
//!
//! # Invariants
//! A serving thread ends only when the connection has ended, or it ends the connection itself. An
//! error that it cannot handle calls [`Service::fail`], so callers get an error and do not hang.
//! This includes panics ([`ServingGuard`]).
//!
//! # Locking
//! `serving` is a leaf.

use super::{connection::Connection, counters::Registry, policy::PolicySlots, wakeup::Wakeup};
use crate::interrupt::Interrupts;
use parking_lot::{Condvar, Mutex};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    fmt,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// State shared by all threads of a session.
pub(crate) struct Service {
    pub(super) registry: Registry,
    pub(super) interrupts: Interrupts,
    pub(crate) payload_max: usize,
    pub(super) wakeup: Wakeup,
    pub(super) policy_slots: Arc<PolicySlots>,
    /// Threads that wait for another request, and the limit of it.
    pub(super) request_waits: AtomicUsize,
    pub(super) request_waits_max: usize,
    connection: Connection,
    /// Affinity of threads that have left their processor.
    processors: Option<CpuSet>,
    /// Guards the number of serving threads.
    serving: Mutex<usize>,
    gone: Condvar,
    over: AtomicBool,
    failure: OnceLock<String>,
}

impl Service {
    pub(super) fn new(
        payload_max: usize,
        request_waits_max: usize,
        connection: Connection,
    ) -> Self {
        Self {
            registry: Registry::default(),
            interrupts: Interrupts::default(),
            payload_max,
            wakeup: Wakeup::default(),
            policy_slots: Arc::default(),
            request_waits: AtomicUsize::new(0),
            request_waits_max,
            connection,
            processors: sched_getaffinity(None).ok(),
            serving: Mutex::new(0),
            gone: Condvar::new(),
            over: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Where it is mounted.
    pub(super) fn dir(&self) -> &Path {
        &self.connection.dir
    }

    /// Gives the calling thread the affinity of the process; `false` if that failed.
    pub(super) fn leave_processor(&self) -> bool {
        let everywhere = self.processors.as_ref();
        everywhere.is_some_and(|set| sched_setaffinity(None, set).is_ok())
    }

    /// The connection ended: interrupts all waits.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.interrupts.close();
    }

    /// The session cannot go on: aborts the connection, so that every caller gets an error.
    pub(crate) fn fail(&self, reason: impl fmt::Display) {
        if self.is_over() || self.failure.set(reason.to_string()).is_err() {
            return;
        }
        tracing::error!(
            mount_point = %self.connection.dir.display(),
            reason = self.failure(),
            "the session ends: every call on this mount fails from now on"
        );
        self.end();
        self.connection.abort();
    }

    /// Why the session failed, if it did.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Has the connection ended?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits for all serving threads.
    pub(super) fn wait(&self) {
        let mut serving = self.serving.lock();
        while *serving > 0 {
            self.gone.wait(&mut serving);
        }
    }
}

/// Counts a serving thread, from before its start until its end.
pub(crate) struct ServingGuard {
    pub(crate) service: Arc<Service>,
}

impl ServingGuard {
    pub(crate) fn new(service: &Arc<Service>) -> Self {
        *service.serving.lock() += 1;
        Self {
            service: service.clone(),
        }
    }
}

impl Drop for ServingGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.service.fail("a thread that serves panicked");
        }
        *self.service.serving.lock() -= 1;
        self.service.gone.notify_all();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A service of no mount, with room for three waits for locks.
    pub(in crate::session) fn service() -> Arc<Service> {
        let connection = Connection::new(PathBuf::from("/nowhere"), None);
        Arc::new(Service::new(4096, 3, connection))
    }

    #[test]
    fn a_thread_that_panics_ends_the_session_and_is_waited_for_no_more() {
        let service = service();
        let serving_guard = ServingGuard::new(&service);
        let thread = thread::spawn(move || {
            let _enlisted = serving_guard;
            panic!("as the test wants");
        });
        service.wait();
        assert!(thread.join().is_err());
        assert!(service.is_over());
        assert_eq!(service.failure(), Some("a thread that serves panicked"));
    }

    #[test]
    fn only_the_first_failure_is_told_and_none_after_a_proper_end() {
        let failed = service();
        failed.fail("first");
        failed.fail("second");
        assert_eq!(failed.failure(), Some("first"));
        let ended = service();
        ended.end();
        ended.fail("late");
        assert_eq!(ended.failure(), None);
    }
}
