//! The limit of counted memory that keeps resident memory within the budget.
//!
//! More is resident than is counted: the program itself, stacks, buffers, and freed blocks that an
//! allocator keeps. The allocator mostly reuses those blocks. If they were subtracted from the
//! limit, each eviction would cause another. So the limit is *controlled*. It is lowered by the
//! excess, and raised step by step while there is none. It changes at most once in the time that an
//! allocator takes to return memory (additive increase; Chiu and Jain, 1989).

use std::time::{Duration, Instant};

/// The limit changes at most once in this time: an allocator returns memory a while after it was
/// freed.
const INTERVAL: Duration = Duration::from_millis(100);

/// The controlled limit.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    /// The budget that it is for.
    budget: u64,
    limit: Option<u64>,
    changed: Option<Instant>,
    /// The most that was counted since the last change.
    held: u64,
    /// What was resident at the last change.
    resident: u64,
}

impl Feedback {
    /// The new limit, for these counted and resident bytes.
    pub(super) fn limit(&mut self, budget: u64, counted: u64, resident: u64, now: Instant) -> u64 {
        if self.budget != budget {
            *self = Self {
                budget,
                ..Self::default()
            };
        }
        self.held = self.held.max(counted);
        let (most, step) = (most(budget), budget / 64);
        let is_due =
            (self.changed).is_none_or(|changed| now.saturating_duration_since(changed) >= INTERVAL);
        let limit = self.limit.unwrap_or(0);
        let next = if resident > most {
            let limit = self.limit.unwrap_or(u64::MAX);
            // Growth beyond the budget will go on, so it is urgent. Up to the budget there is time:
            // freeing much at once takes pages that are in use.
            let is_urgent = resident > budget;
            let grew = is_urgent && resident > self.resident.saturating_add(step);
            let over = resident - most;
            let less = if is_urgent { over } else { over.min(step) };
            match is_due || grew {
                true => limit.min(self.held).saturating_sub(less),
                false => limit,
            }
        } else {
            // That much fits even if no freed block is reused.
            let fits = counted.saturating_add(most - resident);
            let is_reached = self.held.saturating_add(2 * step) >= limit;
            match is_due && is_reached {
                true => limit.saturating_add(step).max(fits),
                false => limit.max(fits),
            }
        };
        let next = next.min(most).max(budget / 8);
        if self.limit != Some(next) {
            self.limit = Some(next);
            self.changed = Some(now);
            self.held = counted;
            self.resident = resident;
        }
        next
    }
}

/// The target for resident memory. Looks come a little late, and memory freed by one class may not
/// be returned before another class has grown by as much.
fn most(budget: u64) -> u64 {
    budget - budget / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A process: what it counts, and how much of what it once had stays resident.
    struct Process {
        start: Instant,
        millis: u64,
        counted: u64,
        resident: u64,
    }

    impl Process {
        fn new() -> Self {
            Self {
                start: Instant::now(),
                millis: 0,
                counted: 0,
                resident: 12 * MIB,
            }
        }

        fn limit(&self, feedback: &mut Feedback) -> u64 {
            let now = self.start + Duration::from_millis(self.millis);
            feedback.limit(64 * MIB, self.counted, self.resident, now)
        }
    }

    #[test]
    fn the_limit_is_at_first_what_fits_beside_what_nobody_counts() {
        let process = Process::new();
        assert_eq!(process.limit(&mut Feedback::default()), 48 * MIB);
    }

    #[test]
    fn memory_that_is_freed_and_not_returned_lowers_the_limit_once() {
        let (mut process, mut feedback) = (Process::new(), Feedback::default());
        process.limit(&mut feedback);
        // Each counted byte takes a fourth more, and freed memory stays resident but is reused.
        let (mut least, mut most) = (u64::MAX, 0);
        for _ in 0..10_000 {
            process.millis += 10;
            process.counted = (process.counted + MIB).min(feedback.limit.unwrap_or(0));
            let takes = 12 * MIB + process.counted / 4 * 5;
            process.resident = process.resident.max(takes);
            process.limit(&mut feedback);
            if process.counted + MIB >= feedback.limit.unwrap_or(0) {
                // A shrinker frees a sixteenth at once.
                process.counted -= process.counted / 16;
            }
            most = most.max(process.resident);
            // Some of it is returned gradually.
            process.resident -= (process.resident - takes).min(MIB / 8);
            if process.millis > 2000 {
                least = least.min(process.counted);
            }
        }
        assert!(most <= 63 * MIB, "{} MiB resident", most / MIB);
        assert!(least > 31 * MIB, "{} MiB counted", least / MIB);
    }

    #[test]
    fn what_grows_beside_what_is_counted_is_made_room_for_at_once() {
        let (mut process, mut feedback) = (Process::new(), Feedback::default());
        process.counted = 45 * MIB;
        process.resident = 59 * MIB;
        process.limit(&mut feedback);
        process.resident = 63 * MIB;
        assert_eq!(process.limit(&mut feedback), 46 * MIB, "that has time");
        process.millis += 100;
        assert_eq!(process.limit(&mut feedback), 44 * MIB);
        process.resident = 66 * MIB;
        assert_eq!(process.limit(&mut feedback), 38 * MIB);
        process.resident = 67 * MIB;
        assert_eq!(process.limit(&mut feedback), 38 * MIB, "that is on its way");
        process.resident = 1000 * MIB;
        assert_eq!(
            process.limit(&mut feedback),
            8 * MIB,
            "something can always be done"
        );
        (process.counted, process.resident) = (0, 20 * MIB);
        assert_eq!(process.limit(&mut feedback), 40 * MIB, "it ended");
    }

    #[test]
    fn a_new_budget_begins_anew_and_none_is_no_limit() {
        let (process, mut feedback) = (Process::new(), Feedback::default());
        process.limit(&mut feedback);
        let now = process.start;
        assert_eq!(feedback.limit(128 * MIB, 0, 12 * MIB, now), 108 * MIB);
        assert!(feedback.limit(u64::MAX, MIB, MIB, now) > u64::MAX / 2);
        assert_eq!(feedback.limit(0, MIB, MIB, now), 0);
    }
}
