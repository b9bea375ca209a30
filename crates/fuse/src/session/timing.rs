//! Service times of requests.
//!
//! A thread times a sample of its requests, so most are served without reading the clock.
//! Operations that wait for a device are all timed. The result is the distribution of times by
//! operation; requests are counted elsewhere.

use super::errors::Errors;
use crate::wire::Opcode;
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// One request in this many is timed. A prime, so that periodic patterns are sampled at each of
/// their steps.
const EVERY: u32 = 61;
/// Powers of two of a microsecond, up to four seconds, and what takes longer.
const BUCKETS: usize = 24;

/// Times of the sampled requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Their sum.
    pub sum: Duration,
    /// Number of requests by bucket: each took no longer than the bucket's [bound](Self::bound),
    /// and longer than the one before.
    pub buckets: [u64; BUCKETS],
}

impl Times {
    /// The upper bound of a bucket. `None`: the last has no bound.
    #[must_use]
    pub fn bound(bucket: usize) -> Option<Duration> {
        (bucket + 1 < BUCKETS).then(|| Duration::from_micros(1 << bucket))
    }

    /// Number of samples.
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

/// Requests of one thread, by operation. Only that thread writes them. Operations that were never
/// requested take no memory.
#[derive(Debug)]
pub(super) struct Operations([OnceLock<Box<OfOperation>>; Opcode::LIMIT]);

#[derive(Debug, Default)]
pub(super) struct OfOperation {
    pub(super) requests: AtomicU64,
    pub(super) errors: Errors,
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Operations {
    fn default() -> Self {
        Self([const { OnceLock::new() }; Opcode::LIMIT])
    }
}

impl Operations {
    /// Those of an operation; `None`: its number is too large.
    pub(super) fn of(&self, opcode: u32) -> Option<&OfOperation> {
        let of = self.0.get(opcode as usize)?;
        Some(of.get_or_init(Box::default))
    }

    /// Those of an operation, if it was requested.
    pub(super) fn get(&self, opcode: Opcode) -> Option<&OfOperation> {
        self.0[opcode as usize].get().map(Box::as_ref)
    }
}

impl OfOperation {
    fn add(&self, time: Duration) {
        let add = |counter: &AtomicU64, n| counter.store(counter.load(Relaxed) + n, Relaxed);
        add(&self.nanoseconds, time.as_nanos() as u64);
        add(&self.buckets[bucket_of(time)], 1);
    }

    /// Adds its times to a sum.
    pub(super) fn add_to(&self, sum: &mut Times) {
        sum.sum += Duration::from_nanos(self.nanoseconds.load(Relaxed));
        for (sum, bucket) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Relaxed);
        }
    }
}

/// Samples the requests of a thread.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// Requests before the next sample.
    left: u32,
    /// The request that is timed, and when it began.
    timed: Option<(u32, Instant)>,
}

impl Sampler {
    /// A request starts.
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
    pub(super) fn end(&mut self, operations: &Operations) {
        if let Some((opcode, begun)) = self.timed.take()
            && let Some(of) = operations.of(opcode)
        {
            of.add(begun.elapsed());
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
        let (operations, mut sampler) = (Operations::default(), Sampler::default());
        let mut serve = |opcode: Opcode, count| {
            for _ in 0..count {
                sampler.begin(opcode as u32);
                sampler.end(&operations);
            }
            let mut times = Times::default();
            operations.get(opcode).unwrap().add_to(&mut times);
            times
        };
        let lookups = serve(Opcode::Lookup, 10 * EVERY);
        assert_eq!(lookups.count(), 10);
        assert!(lookups.sum > Duration::ZERO);
        assert_eq!(serve(Opcode::Fsync, 30).count(), 30);
        sampler.begin(9999);
        sampler.end(&operations);
        sampler.begin(u32::MAX);
        sampler.end(&operations);
    }

    #[test]
    fn what_recurs_is_timed_at_each_of_its_steps() {
        let (operations, mut sampler) = (Operations::default(), Sampler::default());
        let steps = [Opcode::Lookup, Opcode::Open, Opcode::Read, Opcode::Release];
        for _ in 0..EVERY {
            for opcode in steps {
                sampler.begin(opcode as u32);
                sampler.end(&operations);
            }
        }
        for opcode in steps {
            let mut times = Times::default();
            operations.get(opcode).unwrap().add_to(&mut times);
            assert_eq!(times.count(), 1, "{opcode:?}");
        }
    }
}
