use crate::journal_primitive::{AtomicU64, CLOCK, Ordering};
use holdfast_core::store::Stamp;
use holdfast_sync::Padded;
use std::time::{Duration, Instant};

/// Where stamps come from.
///
/// *Invariant.* If one call returned before another began, whoever made them, the second has the
/// greater stamp. So batches whose appends exclude one another (one object's) are in order.
#[derive(Debug)]
pub(super) enum Stamps {
    /// Nanoseconds of the monotonic clock: reading it writes nothing, so cores do not meet here.
    Clock {
        /// What the clock is read against.
        origin: Instant,
        /// The stamp at that moment.
        base: u64,
    },
    /// One counter for all, where the clock is too coarse or too slow.
    Counter(Box<Padded<AtomicU64>>),
}

const READS: u32 = 64;
const SLOWEST: Duration = Duration::from_nanos(120);

impl Stamps {
    /// Stamps greater than `last`, from the clock if it is good enough.
    pub(super) fn after(last: Stamp) -> Self {
        if CLOCK && clock_is_good() {
            Self::Clock {
                origin: Instant::now(),
                base: last.0 + 1,
            }
        } else {
            Self::counter_after(last)
        }
    }

    /// Stamps greater than `last` from a counter.
    pub(super) fn counter_after(last: Stamp) -> Self {
        Self::Counter(Box::new(Padded(AtomicU64::new(last.0))))
    }

    #[inline]
    pub(super) fn next(&self) -> Stamp {
        match self {
            Self::Clock { origin, base } => {
                // 2^64 nanoseconds are 584 years.
                let since = origin.elapsed().as_nanos() as u64;
                Stamp(base + since)
            }
            // Relaxed: what orders two calls orders their additions.
            Self::Counter(last) => Stamp(last.fetch_add(1, Ordering::Relaxed) + 1),
        }
    }
}

/// Does each read of the clock differ from the one before, and come quickly? The kernel keeps
/// the monotonic clock in step between cores; between two appends to one object lies more than
/// between two reads.
fn clock_is_good() -> bool {
    let start = Instant::now();
    let mut last = start;
    for _ in 0..READS {
        let now = Instant::now();
        if now <= last {
            return false;
        }
        last = now;
    }
    last - start <= SLOWEST * READS
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::thread;

    #[test]
    fn stamps_grow_from_lock_to_lock() {
        let clock = Stamps::Clock {
            origin: Instant::now(),
            base: 8,
        };
        for stamps in [clock, Stamps::counter_after(Stamp(7))] {
            let last = Mutex::new(Stamp(7));
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..10_000 {
                            let mut last = last.lock();
                            let next = stamps.next();
                            assert!(next > *last, "{next:?} after {last:?} of {stamps:?}");
                            *last = next;
                        }
                    });
                }
            });
        }
    }
}
