//! Counters of requests and bytes, one set for each thread, summed on demand. They also say whether
//! the thread serves a request.
//!
//! # Invariants
//! Each [`Counters`] is written by one thread only, by a load and a store instead of a locked
//! instruction, and read by any. A reader may see an old value, never a torn one.
//!
//! `Counters::turn` is odd from before the thread reads a request until it has handed its reply
//! over. A thread that publishes a flag and then waits for all turns to end
//! ([`Registry::wait_for_replies`]) knows that every request served without the flag was answered.

use super::{
    errors::ErrorCounts,
    timing::{Operations, Times},
};
use crate::wire::Opcode;
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, Ordering::Relaxed, fence},
    },
    thread,
    time::{Duration, Instant},
};

/// Interval at which [`Registry::wait_for_replies`] polls.
const PAUSE: Duration = Duration::from_micros(200);

/// The counters of one thread. Aligned so that no two threads' counters share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    /// Odd while the thread serves.
    turn: AtomicU64,
    unknown: AtomicU64,
    malformed: AtomicU64,
    panics: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    pub(super) operations: Operations,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    /// The thread starts to serve a request.
    pub(crate) fn begin(&self) {
        add(&self.turn, 1);
        // Pairs with the fence in `wait_for_replies`: either `wait_for_replies` sees this turn, or
        // this turn sees what was published before `wait_for_replies`.
        fence(Ordering::SeqCst);
    }

    /// The request was answered.
    pub(crate) fn end(&self) {
        let turn = self.turn.load(Relaxed).wrapping_add(1);
        // Release: pairs with the acquire loads in `wait_for_replies`, which then follow the reply.
        self.turn.store(turn, Ordering::Release);
    }

    pub(crate) fn request(&self, opcode: u32) {
        let of = self.operations.of(opcode);
        add(of.map_or(&self.unknown, |of| &of.requests), 1);
    }

    /// A request was answered with an error.
    pub(crate) fn error(&self, opcode: u32, error: Errno) {
        if let Some(of) = self.operations.of(opcode) {
            of.errors.add(error);
        }
    }

    pub(crate) fn malformed(&self) {
        add(&self.malformed, 1);
    }

    pub(crate) fn panic(&self) {
        add(&self.panics, 1);
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
    /// Times of the sampled requests, by operation; operations without a sample are left out.
    pub times: Vec<(Opcode, Times)>,
    /// Errors that requests were answered with, by operation; operations without one are left out.
    pub errors: Vec<(Opcode, ErrorCounts)>,
    /// Requests of operations that this side does not know.
    pub unknown: u64,
    /// Requests with inconsistent bytes.
    pub malformed: u64,
    /// Requests that ended in a panic and were answered with `EIO`.
    pub panics: u64,
    /// Bytes of file data read.
    pub bytes_read: u64,
    /// Bytes of file data written.
    pub bytes_written: u64,
}

/// The counters of all threads of a session, ended ones included.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    all: Mutex<Vec<Arc<Counters>>>,
}

impl Registry {
    /// Counters for one more thread.
    pub(crate) fn enlist(&self) -> Arc<Counters> {
        let mut all = self.all.lock();
        // Counters of an ended thread are reused with their values.
        if let Some(left) = all.iter().find(|counters| Arc::strong_count(counters) == 1) {
            return left.clone();
        }
        let counters = Arc::new(Counters::default());
        all.push(counters.clone());
        counters
    }

    /// Waits until every turn under way has ended, except `own`; `false` if one lasts beyond the
    /// deadline.
    pub(crate) fn wait_for_replies(&self, own: Option<&Counters>, deadline: Instant) -> bool {
        fence(Ordering::SeqCst);
        let all = self.all.lock().clone();
        let mut busy: Vec<(Arc<Counters>, u64)> = all
            .into_iter()
            .filter(|counters| !own.is_some_and(|own| ptr::eq(own, &raw const **counters)))
            .map(|counters| {
                let turn = counters.turn.load(Ordering::Acquire);
                (counters, turn)
            })
            .filter(|(_, turn)| turn % 2 == 1)
            .collect();
        loop {
            busy.retain(|(counters, turn)| counters.turn.load(Ordering::Acquire) == *turn);
            if busy.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(PAUSE);
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let all = self.all.lock();
        let sum = |pick: &dyn Fn(&Counters) -> &AtomicU64| -> u64 {
            all.iter()
                .map(|counters| pick(counters).load(Relaxed))
                .sum()
        };
        let (mut requests, mut times, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for &opcode in Opcode::ALL {
            let (mut count, mut sum) = (0, Times::default());
            let mut error_counts = ErrorCounts::default();
            for of in all.iter().filter_map(|it| it.operations.get(opcode)) {
                count += of.requests.load(Relaxed);
                of.add_to(&mut sum);
                of.errors.add_to(&mut error_counts);
            }
            if count != 0 {
                requests.push((opcode, count));
            }
            if error_counts.iter().next().is_some() {
                errors.push((opcode, error_counts));
            }
            if sum.count() != 0 {
                times.push((opcode, sum));
            }
        }
        Totals {
            requests,
            times,
            errors,
            unknown: sum(&|counters| &counters.unknown),
            malformed: sum(&|counters| &counters.malformed),
            panics: sum(&|counters| &counters.panics),
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
    fn settling_waits_for_the_turns_under_way_and_for_no_others() {
        let registry = Registry::default();
        let (busy, idle, own) = (registry.enlist(), registry.enlist(), registry.enlist());
        let far = || Instant::now() + Duration::from_secs(60);
        own.begin();
        idle.begin();
        idle.end();
        assert!(registry.wait_for_replies(Some(&*own), far()));
        assert!(
            !registry.wait_for_replies(None, Instant::now()),
            "its own turn counts"
        );
        busy.begin();
        assert!(!registry.wait_for_replies(Some(&*own), Instant::now()));
        thread::scope(|scope| {
            let settled = scope.spawn(|| registry.wait_for_replies(Some(&*own), far()));
            thread::sleep(Duration::from_millis(20));
            assert!(!settled.is_finished());
            busy.end();
            // The next turn is another's concern.
            busy.begin();
            assert!(settled.join().unwrap());
        });
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
        one.error(Opcode::Read as u32, Errno::EIO);
        two.error(Opcode::Read as u32, Errno::EIO);
        two.error(u32::MAX, Errno::EIO);
        let totals = registry.totals();
        assert_eq!(totals.requests, [(Opcode::Read, 2)]);
        assert_eq!((totals.unknown, totals.bytes_read), (2, 7));
        let [(opcode, errors)] = totals.errors[..] else {
            panic!("of one operation: {:?}", totals.errors);
        };
        assert_eq!(
            (opcode, errors.iter().next()),
            (Opcode::Read, Some(("EIO", 2)))
        );
    }
}
