//! Counts of requests and bytes: per thread, summed when somebody asks.
//!
//! # Invariants
//! Each [`Counters`] is written by one thread only (so a load and a store do, no locked
//! instruction) and read by any; a reader may see a count a moment late, never torn.

use crate::wire::Opcode;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// What one thread counts. Aligned so that no two threads' counters share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    requests: [AtomicU64; Opcode::LIMIT],
    unknown: AtomicU64,
    malformed: AtomicU64,
    panics: AtomicU64,
    deferred: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: [const { AtomicU64::new(0) }; Opcode::LIMIT],
            unknown: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    pub(crate) fn request(&self, opcode: u32) {
        add(
            self.requests.get(opcode as usize).unwrap_or(&self.unknown),
            1,
        );
    }

    pub(crate) fn malformed(&self) {
        add(&self.malformed, 1);
    }

    pub(crate) fn panic(&self) {
        add(&self.panics, 1);
    }

    pub(crate) fn deferred(&self) {
        add(&self.deferred, 1);
    }

    pub(crate) fn read(&self, bytes: usize) {
        add(&self.bytes_read, bytes as u64);
    }

    pub(crate) fn written(&self, bytes: usize) {
        add(&self.bytes_written, bytes as u64);
    }
}

/// Sums over all threads of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests by operation, those never seen left out.
    pub requests: Vec<(Opcode, u64)>,
    /// Requests of operations that this side does not know.
    pub unknown: u64,
    /// Requests whose bytes contradicted themselves.
    pub malformed: u64,
    /// Requests that ended in a panic and were answered with `EIO`.
    pub panics: u64,
    /// Requests handed to worker threads because they may block.
    pub deferred: u64,
    /// Bytes of file data read.
    pub bytes_read: u64,
    /// Bytes of file data written.
    pub bytes_written: u64,
}

/// The counters of all threads of a session, dead ones included.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    all: Mutex<Vec<Arc<Counters>>>,
}

impl Registry {
    /// Counters for one more thread.
    pub(crate) fn enlist(&self) -> Arc<Counters> {
        let mut all = self.all.lock();
        // Those of a thread that has gone are taken over with what it had counted.
        if let Some(left) = all.iter().find(|counters| Arc::strong_count(counters) == 1) {
            return left.clone();
        }
        let counters = Arc::new(Counters::default());
        all.push(counters.clone());
        counters
    }

    pub(crate) fn totals(&self) -> Totals {
        let all = self.all.lock();
        let sum = |pick: &dyn Fn(&Counters) -> &AtomicU64| -> u64 {
            all.iter()
                .map(|counters| pick(counters).load(Relaxed))
                .sum()
        };
        Totals {
            requests: Opcode::ALL
                .iter()
                .map(|&opcode| (opcode, sum(&|counters| &counters.requests[opcode as usize])))
                .filter(|&(_, count)| count != 0)
                .collect(),
            unknown: sum(&|counters| &counters.unknown),
            malformed: sum(&|counters| &counters.malformed),
            panics: sum(&|counters| &counters.panics),
            deferred: sum(&|counters| &counters.deferred),
            bytes_read: sum(&|counters| &counters.bytes_read),
            bytes_written: sum(&|counters| &counters.bytes_written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_thread_that_has_gone_are_taken_over() {
        let registry = Registry::default();
        registry.enlist().written(3);
        registry.enlist().written(4);
        assert_eq!(registry.all.lock().len(), 1);
        assert_eq!(registry.totals().bytes_written, 7);
    }

    #[test]
    fn totals_sum_over_threads_and_leave_out_what_was_never_seen() {
        let registry = Registry::default();
        let (one, two) = (registry.enlist(), registry.enlist());
        one.request(Opcode::Read as u32);
        two.request(Opcode::Read as u32);
        two.request(9999);
        two.request(u32::MAX);
        one.read(7);
        let totals = registry.totals();
        assert_eq!(totals.requests, [(Opcode::Read, 2)]);
        assert_eq!((totals.unknown, totals.bytes_read), (2, 7));
    }
}
