use crate::journal_primitive::{AtomicU64, CLOCK, Ordering};
use holdfast_core::store::Stamp;
use holdfast_sync::Padded;
use std::time::{Duration, Instant};

/// Where stamps come from.
///
/// *Invariant.* If one call returned before another began, whoever made them, the second has the
/// greater stamp. So batches whose appends exclude one another (one object's) are in order.
///
/// Reading the clock takes as long as encoding a small batch. As long as only one lane appends, between two cuts,
/// its stamps are counted from the first one: they are never ahead of the clock, so whoever comes after it and
/// reads that has a greater one; and he has said that he came, so that the lane reads the clock from then on. A lane
/// that has filled a whole frame while no other appended is taken to be alone again; it looks whether that is so, which
/// stops all, when it filled the frame before as well.
#[derive(Debug)]
pub(super) enum Stamps {
    /// Nanoseconds of the monotonic clock: reading it writes nothing, so cores do not meet here.
    Clock {
        /// What the clock is read against.
        origin: Instant,
        /// The stamp at that moment.
        base: u64,
        /// The lane that has appended since the last cut, or [`NONE`] or [`SEVERAL`].
        alone: Box<Padded<AtomicU64>>,
        /// The lane that has filled the latest frame, or [`NONE`].
        filler: Box<Padded<AtomicU64>>,
    },
    /// One counter for all, where the clock is too coarse or too slow.
    Counter(Box<Padded<AtomicU64>>),
}

/// No lane has appended since the last cut.
const NONE: u64 = u64::MAX;
/// More than one has.
const SEVERAL: u64 = u64::MAX - 1;

const READS: u32 = 64;
const SLOWEST: Duration = Duration::from_nanos(120);

impl Stamps {
    /// Stamps greater than `last`, from the clock if it is good enough.
    pub(super) fn after(last: Stamp) -> Self {
        if CLOCK && clock_is_good() {
            Self::Clock {
                origin: Instant::now(),
                base: last.0 + 1,
                alone: Box::new(Padded(AtomicU64::new(NONE))),
                filler: Box::new(Padded(AtomicU64::new(NONE))),
            }
        } else {
            Self::counter_after(last)
        }
    }

    /// Stamps greater than `last` from a counter.
    pub(super) fn counter_after(last: Stamp) -> Self {
        Self::Counter(Box::new(Padded(AtomicU64::new(last.0))))
    }

    /// The stamp of the next batch of this lane, which is locked and whose last one had the stamp `last`.
    #[inline]
    pub(super) fn next_of(&self, lane: u16, last: Stamp) -> Stamp {
        let lane = u64::from(lane);
        // Relaxed, here and below: what orders two appends orders what they do to it.
        if let Self::Clock { alone, .. } = self
            && alone.load(Ordering::Relaxed) == lane
        {
            return Stamp(last.0 + 1);
        }
        self.meet(lane);
        self.next()
    }

    /// This lane appends.
    fn meet(&self, lane: u64) {
        let Self::Clock { alone, .. } = self else {
            return;
        };
        if alone.load(Ordering::Relaxed) == SEVERAL {
            return;
        }
        let first = alone.compare_exchange(NONE, lane, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            alone.store(SEVERAL, Ordering::Relaxed);
        }
    }

    /// This lane has filled a frame. Is it perhaps alone again? Several have appended since the last cut, but it filled
    /// the frame before as well: of two that are as busy one sees here that it is not, without looking at the other.
    pub(super) fn may_be_alone_again(&self, lane: u16) -> bool {
        let Self::Clock { alone, filler, .. } = self else {
            return false;
        };
        alone.load(Ordering::Relaxed) == SEVERAL
            && filler.swap(u64::from(lane), Ordering::Relaxed) == u64::from(lane)
    }

    /// All lanes are locked: no stamp is under way. Whoever comes next reads the clock.
    pub(super) fn begin_anew(&self) {
        if let Self::Clock { alone, .. } = self {
            alone.store(NONE, Ordering::Relaxed);
        }
    }

    /// All lanes are locked, and will have greater stamps than any that was given.
    pub(super) fn cut(&self) -> Stamp {
        self.begin_anew();
        self.next()
    }

    #[inline]
    pub(super) fn next(&self) -> Stamp {
        match self {
            Self::Clock { origin, base, .. } => {
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

    fn clock_after(last: Stamp) -> Stamps {
        Stamps::Clock {
            origin: Instant::now(),
            base: last.0 + 1,
            alone: Box::new(Padded(AtomicU64::new(NONE))),
            filler: Box::new(Padded(AtomicU64::new(NONE))),
        }
    }

    #[test]
    fn a_lane_counts_while_it_is_alone_and_reads_the_clock_beside_others() {
        let stamps = clock_after(Stamp(7));
        let mut last = stamps.next_of(3, Stamp(7));
        for _ in 0..10 {
            let next = stamps.next_of(3, last);
            assert_eq!(next.0, last.0 + 1);
            last = next;
        }
        let other = stamps.next_of(4, Stamp(7));
        assert!(other > last, "{other:?} after {last:?}");
        let beside = stamps.next_of(3, last);
        assert!(beside > other, "{beside:?} after {other:?}");
        let cut = stamps.cut();
        assert!(cut > beside);
        let first = stamps.next_of(4, cut);
        assert!(first > cut);
        assert_eq!(stamps.next_of(4, first).0, first.0 + 1);
    }

    #[test]
    fn stamps_of_lanes_grow_from_lock_to_lock_whoever_comes_and_whenever_all_stand_still() {
        for stamps in [clock_after(Stamp(7)), Stamps::counter_after(Stamp(7))] {
            // What one object's lock keeps in order, and what each lane had last.
            let object = Mutex::new((Stamp(7), [Stamp(7); 3], 0_u32));
            thread::scope(|scope| {
                let work = |lane: u16| {
                    let (stamps, object) = (&stamps, &object);
                    scope.spawn(move || {
                        for round in 0..10_000 {
                            let mut object = object.lock();
                            let (last, lanes, count) = &mut *object;
                            let own = &mut lanes[usize::from(lane)];
                            let next = stamps.next_of(lane, *own).max(Stamp(own.0 + 1));
                            assert!(next > *last, "{next:?} after {last:?} of {stamps:?}");
                            (*last, *own) = (next, next);
                            *count += 1;
                            if *count % 64 == 0 {
                                let cut = stamps.cut();
                                assert!(cut > next);
                                (*last, *lanes) = (cut, [cut; 3]);
                            }
                            drop(object);
                            if round % 128 == 0 {
                                thread::yield_now();
                            }
                        }
                    })
                };
                let threads = [0, 1, 2].map(work);
                for thread in threads {
                    thread.join().unwrap();
                }
            });
        }
    }

    #[test]
    fn who_fills_two_frames_in_a_row_beside_others_may_be_alone_again() {
        let stamps = clock_after(Stamp(7));
        stamps.next_of(3, Stamp(7));
        assert!(!stamps.may_be_alone_again(3) && !stamps.may_be_alone_again(3));
        stamps.next_of(4, Stamp(7));
        let asked = [3, 3, 4, 3, 4, 4, 4].map(|lane| stamps.may_be_alone_again(lane));
        assert_eq!(asked, [false, true, false, false, false, true, true]);
        stamps.begin_anew();
        assert!(!stamps.may_be_alone_again(4));
        assert!(!Stamps::counter_after(Stamp(7)).may_be_alone_again(4));
    }

    #[test]
    fn stamps_grow_from_lock_to_lock() {
        for stamps in [clock_after(Stamp(7)), Stamps::counter_after(Stamp(7))] {
            let last = Mutex::new(Stamp(7));
            thread::scope(|scope| {
                let work = || {
                    for _ in 0..10_000 {
                        let mut last = last.lock();
                        let next = stamps.next();
                        assert!(next > *last, "{next:?} after {last:?} of {stamps:?}");
                        *last = next;
                    }
                };
                let threads = [(); 4].map(|()| scope.spawn(work));
                for thread in threads {
                    thread.join().unwrap();
                }
            });
        }
    }
}
