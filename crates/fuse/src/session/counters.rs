//! Counts of requests and bytes, and whether one is under way: per thread, looked at together
//! when somebody asks.
//!
//! # Invariants
//! Each [`Counters`] is written by one thread only (so a load and a store do, no locked
//! instruction) and read by any; a reader may see a count a moment late, never torn.
//!
//! A thread's turn is odd from before it looks at a request until the reply is out of its hands.
//! So whoever publishes a fact and then waits for all turns to end ([`Registry::settle`]) knows
//! that whatever did not heed the fact has been answered.

use super::timing::{Timed, Times};
use crate::wire::Opcode;
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

/// How long [`Registry::settle`] sleeps between two looks.
const PAUSE: Duration = Duration::from_micros(200);

/// What one thread counts. Aligned so that no two threads' counters share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    /// Odd while the thread serves.
    turn: AtomicU64,
    requests: [AtomicU64; Opcode::LIMIT],
    unknown: AtomicU64,
    malformed: AtomicU64,
    panics: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    pub(super) timed: Timed,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            turn: AtomicU64::new(0),
            requests: [const { AtomicU64::new(0) }; Opcode::LIMIT],
            unknown: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            timed: Timed::default(),
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    /// The thread begins to serve.
    pub(crate) fn begin(&self) {
        add(&self.turn, 1);
        // Pairs with the fence in `settle`: either that sees this turn, or this turn sees what was
        // published before.
        fence(Ordering::SeqCst);
    }

    /// What the thread has served is answered.
    pub(crate) fn end(&self) {
        let turn = self.turn.load(Relaxed).wrapping_add(1);
        // Release: replies come before it for whoever sees it.
        self.turn.store(turn, Ordering::Release);
    }

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
    /// How long those took that were timed, by operation: one of so many, and none of operations never timed.
    pub times: Vec<(Opcode, Times)>,
    /// Requests of operations that this side does not know.
    pub unknown: u64,
    /// Requests whose bytes contradicted themselves.
    pub malformed: u64,
    /// Requests that ended in a panic and were answered with `EIO`.
    pub panics: u64,
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

    /// Waits until every turn that is under way has ended, except `own`; `false` if one lasts
    /// beyond the deadline.
    pub(crate) fn settle(&self, own: Option<&Counters>, deadline: Instant) -> bool {
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
        let times = |&opcode: &Opcode| {
            let mut times = Times::default();
            all.iter()
                .for_each(|counters| counters.timed.add_to(opcode, &mut times));
            (opcode, times)
        };
        Totals {
            times: Opcode::ALL
                .iter()
                .map(times)
                .filter(|(_, times)| times.count() != 0)
                .collect(),
            requests: Opcode::ALL
                .iter()
                .map(|&opcode| (opcode, sum(&|counters| &counters.requests[opcode as usize])))
                .filter(|&(_, count)| count != 0)
                .collect(),
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
        assert!(registry.settle(Some(&*own), far()));
        assert!(
            !registry.settle(None, Instant::now()),
            "its own turn counts"
        );
        busy.begin();
        assert!(!registry.settle(Some(&*own), Instant::now()));
        thread::scope(|scope| {
            let settled = scope.spawn(|| registry.settle(Some(&*own), far()));
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
        let totals = registry.totals();
        assert_eq!(totals.requests, [(Opcode::Read, 2)]);
        assert_eq!((totals.unknown, totals.bytes_read), (2, 7));
    }
}
