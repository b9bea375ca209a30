//! How long requests take to be served.
//!
//! A thread times one of so many of its requests, so that the others are served without a look at the clock; of the
//! operations that wait for a device anyway it times all. Nothing is lost by that: what is
//! told is how times are spread, operation by operation, and counts of requests come from elsewhere.

use super::counters::Counters;
use crate::wire::Opcode;
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Of so many requests of a thread one is timed. A prime: what callers do in a fixed order is met at each of its steps.
const EVERY: u32 = 61;
/// Powers of two of a microsecond, up to four seconds, and what takes longer.
const BUCKETS: usize = 24;

/// How long the requests of one operation took that were timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// All of them together.
    pub sum: Duration,
    /// How many took no longer than the [bound](Self::bound) of each bucket, and longer than that of the one before.
    pub buckets: [u64; BUCKETS],
}

impl Times {
    /// What falls into a bucket takes no longer than this. `None`: the last has no bound.
    #[must_use]
    pub fn bound(bucket: usize) -> Option<Duration> {
        (bucket + 1 < BUCKETS).then(|| Duration::from_micros(1 << bucket))
    }

    /// Requests that were timed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

fn bucket_of(time: Duration) -> usize {
    let micros = time.as_nanos().div_ceil(1000);
    let bits = u128::BITS - micros.saturating_sub(1).leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// The times of one thread, by operation: written by it alone. What it never timed takes no memory.
#[derive(Debug)]
pub(super) struct Timed([OnceLock<Box<OfOperation>>; Opcode::LIMIT]);

#[derive(Debug, Default)]
struct OfOperation {
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Timed {
    fn default() -> Self {
        Self([const { OnceLock::new() }; Opcode::LIMIT])
    }
}

impl Timed {
    fn add(&self, opcode: u32, time: Duration) {
        let Some(of) = self.0.get(opcode as usize) else {
            return;
        };
        let of = of.get_or_init(Box::default);
        let add = |counter: &AtomicU64, n| counter.store(counter.load(Relaxed) + n, Relaxed);
        add(&of.nanoseconds, time.as_nanos() as u64);
        add(&of.buckets[bucket_of(time)], 1);
    }

    /// Adds those of an operation to a sum.
    pub(super) fn add_to(&self, opcode: Opcode, sum: &mut Times) {
        if let Some(of) = self.0[opcode as usize].get() {
            sum.sum += Duration::from_nanos(of.nanoseconds.load(Relaxed));
            for (sum, bucket) in sum.buckets.iter_mut().zip(&of.buckets) {
                *sum += bucket.load(Relaxed);
            }
        }
    }
}

/// Decides which requests of a thread are timed.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// So many go untimed before the next.
    left: u32,
    /// The request that is timed, and when it began.
    timed: Option<(u32, Instant)>,
}

impl Sampler {
    /// A request begins to be served.
    #[inline]
    pub(super) fn begin(&mut self, opcode: u32) {
        if self.left > 0 && !waits_for_a_device(opcode) {
            self.left -= 1;
            return;
        }
        self.left = self.left.checked_sub(1).unwrap_or(EVERY - 1);
        self.timed = Some((opcode, Instant::now()));
    }

    /// Its reply is about to be handed over.
    #[inline]
    pub(super) fn end(&mut self, counters: &Counters) {
        if let Some((opcode, begun)) = self.timed.take() {
            counters.timed.add(opcode, begun.elapsed());
        }
    }
}

fn waits_for_a_device(opcode: u32) -> bool {
    const ALL: [Opcode; 3] = [Opcode::Fsync, Opcode::FsyncDir, Opcode::SyncFs];
    ALL.iter().any(|&each| each as u32 == opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_first_bucket_whose_bound_it_keeps() {
        for nanos in [
            0,
            1,
            999,
            1000,
            1001,
            2000,
            2001,
            4_194_304_000,
            4_194_304_001,
        ] {
            let time = Duration::from_nanos(nanos);
            let bucket = bucket_of(time);
            assert!(
                Times::bound(bucket).is_none_or(|bound| time <= bound),
                "{nanos}"
            );
            let before = bucket.checked_sub(1).and_then(Times::bound);
            assert!(before.is_none_or(|bound| time > bound), "{nanos}");
        }
        assert_eq!(bucket_of(Duration::MAX), BUCKETS - 1);
        assert_eq!(Times::bound(BUCKETS - 1), None);
    }

    #[test]
    fn one_request_of_many_is_timed_and_each_that_waits_for_a_device() {
        let (counters, mut sampler) = (Counters::default(), Sampler::default());
        let mut serve = |opcode: Opcode, count| {
            for _ in 0..count {
                sampler.begin(opcode as u32);
                sampler.end(&counters);
            }
            let mut times = Times::default();
            counters.timed.add_to(opcode, &mut times);
            times
        };
        let lookups = serve(Opcode::Lookup, 10 * EVERY);
        assert_eq!(lookups.count(), 10);
        assert!(lookups.sum > Duration::ZERO);
        assert_eq!(serve(Opcode::Fsync, 30).count(), 30);
        sampler.begin(9999);
        sampler.end(&counters);
        sampler.begin(u32::MAX);
        sampler.end(&counters);
    }

    #[test]
    fn what_recurs_is_timed_at_each_of_its_steps() {
        let (counters, mut sampler) = (Counters::default(), Sampler::default());
        let steps = [Opcode::Lookup, Opcode::Open, Opcode::Read, Opcode::Release];
        for _ in 0..EVERY {
            for opcode in steps {
                sampler.begin(opcode as u32);
                sampler.end(&counters);
            }
        }
        for opcode in steps {
            let mut times = Times::default();
            counters.timed.add_to(opcode, &mut times);
            assert_eq!(times.count(), 1, "{opcode:?}");
        }
    }
}
