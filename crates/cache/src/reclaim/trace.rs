//! Records of reclaim passes, for commands that watch them.
//!
//! Mostly no command watches, and then a pass reads one word. A read makes the trace keep records
//! for a while, a few thousand at most. A late reader gets the number of records that it missed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::thread::{gettid, sched_getcpu};
use rustix::time::{ClockId, clock_gettime};

use super::arithmetic::Pressure;
use super::context::Context;

/// The most records that are kept.
const KEPT: usize = 4096;
/// Records are kept for this time after the last read.
const LEASE: Duration = Duration::from_secs(10);

/// A step of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number among all records, from 0 on.
    pub sequence: u64,
    /// The thread's name.
    pub thread: String,
    /// Its number.
    pub tid: u32,
    /// The processor where it ran.
    pub processor: u32,
    /// Its time by the monotonic clock.
    pub time: Duration,
    /// The shrinker's name.
    pub shrinker: &'static str,
    /// Its number among those of the process.
    pub number: u32,
    /// What it did.
    pub step: Step,
}

/// The recorded steps of a pass: the fields of the kernel's `mm_shrink_slab_start` and
/// `mm_shrink_slab_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It begins.
    Start {
        /// Deferred by earlier passes.
        deferred: u64,
        /// The context of the thread.
        context: Context,
        /// The excess.
        pressure: Pressure,
        /// Objects that exist.
        items: u64,
        /// Objects to scan because of the pressure.
        delta: u64,
        /// Objects to scan in all.
        total: u64,
    },
    /// It ends.
    End {
        /// Deferred when it began.
        deferred: u64,
        /// Deferred now.
        owed: u64,
        /// Left over by this pass.
        total: u64,
        /// Objects that were freed.
        freed: u64,
    },
}

/// The result of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The next records, the oldest first.
    pub records: Vec<Record>,
    /// Records before these that were missed.
    pub missed: u64,
    /// Where the next read continues.
    pub next: u64,
}

/// The records of a process.
#[derive(Debug, Default)]
pub struct Trace {
    /// Records are kept until this millisecond; 0: there is no reader.
    until: AtomicU64,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<Record>,
    next: u64,
}

/// The time of a coarse clock, which costs little and is precise enough for a lease.
fn now() -> Duration {
    duration(ClockId::MonotonicCoarse)
}

fn duration(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = now.tv_sec.max(0).cast_unsigned();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Trace {
    /// Are records kept?
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        // Relaxed: a record or two before a reader's first are not missed.
        self.until.load(Relaxed) != 0
    }

    /// Returns up to `most` records from number `from` on, and keeps records for ten more seconds.
    /// `None`: from now on.
    pub fn read(&self, from: Option<u64>, most: usize) -> Records {
        self.until.store(millis(now() + LEASE), Relaxed);
        let ring = self.ring.lock();
        let from = from.map_or(ring.next, |from| from.min(ring.next));
        let first = ring.next - ring.kept.len() as u64;
        let missed = first.saturating_sub(from);
        let skip = usize::try_from((from + missed) - first).unwrap_or(usize::MAX);
        let records: Vec<Record> = ring.kept.iter().skip(skip).take(most).cloned().collect();
        Records {
            next: from + missed + records.len() as u64,
            records,
            missed,
        }
    }

    /// Keeps a record, if there is a reader.
    #[inline]
    pub(super) fn record(&self, (shrinker, number): (&'static str, u32), step: Step) {
        if self.is_on() {
            self.keep(shrinker, number, step);
        }
    }

    #[cold]
    fn keep(&self, shrinker: &'static str, number: u32, step: Step) {
        let thread = std::thread::current();
        let mut record = Record {
            sequence: 0,
            thread: thread.name().unwrap_or("holdfast").to_owned(),
            tid: u32::try_from(gettid().as_raw_pid()).unwrap_or(0),
            processor: u32::try_from(sched_getcpu()).unwrap_or(0),
            time: duration(ClockId::Monotonic),
            shrinker,
            number,
            step,
        };
        let mut ring = self.ring.lock();
        let until = self.until.load(Relaxed);
        if until < millis(now()) {
            // Unless a reader has just come.
            let _ = (self.until).compare_exchange(until, 0, Relaxed, Relaxed);
            ring.kept = VecDeque::new();
            return;
        }
        record.sequence = ring.next;
        ring.next += 1;
        if ring.kept.len() == KEPT {
            ring.kept.pop_front();
        }
        ring.kept.push_back(record);
    }

    /// As if no reader had come for the time that records are kept.
    #[cfg(test)]
    fn lapse(&self) {
        self.until.store(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(trace: &Trace, count: u64) {
        for freed in 0..count {
            let end = Step::End {
                deferred: 0,
                owed: 0,
                total: 0,
                freed,
            };
            trace.record(("metadata", 7), end);
        }
    }

    #[test]
    fn records_are_kept_for_a_reader_and_for_nobody_else() {
        let trace = Trace::default();
        add(&trace, 3);
        assert!(!trace.is_on());
        assert_eq!(trace.read(Some(0), 10), Records::default());
        add(&trace, 5);
        let read = trace.read(Some(0), 2);
        assert_eq!((read.records.len(), read.missed, read.next), (2, 0, 2));
        let (record, thread) = (&read.records[1], std::thread::current());
        assert_eq!((record.sequence, record.number), (1, 7));
        assert_eq!(Some(&*record.thread), thread.name());
        let rest = trace.read(Some(read.next), 10);
        assert_eq!((rest.records.len(), rest.next), (3, 5));
        assert!(rest.records[0].time >= record.time);
        assert_eq!(trace.read(None, 10).next, 5, "from now on");
        trace.lapse();
        add(&trace, 1);
        assert!(!trace.is_on());
        let read = trace.read(Some(1), 10);
        assert_eq!((read.records.len(), read.missed, read.next), (0, 4, 5));
    }

    #[test]
    fn a_reader_that_comes_late_is_told_how_much_it_missed() {
        let trace = Trace::default();
        let from = trace.read(None, 1).next;
        add(&trace, KEPT as u64 + 10);
        let read = trace.read(Some(from), KEPT);
        assert_eq!((read.records.len(), read.missed), (KEPT, 10));
        assert_eq!(read.records[0].sequence, 10);
        let ahead = trace.read(Some(u64::MAX), 10);
        assert_eq!(ahead.next, KEPT as u64 + 10);
    }
}
