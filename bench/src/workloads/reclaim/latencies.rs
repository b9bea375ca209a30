//! How long single operations take: counts by time, in steps of a sixteenth of it.

use serde::{Deserialize, Serialize};

/// Steps within a power of two.
const STEPS: u64 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Counts of operations by their time. Merging two is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Latencies {
    /// By step; as many as were needed.
    counts: Vec<u64>,
}

/// The step that a time is in.
fn step(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    let within = (nanos >> shift) & (STEPS - 1);
    (u64::from(shift + 1) * STEPS + within) as usize
}

/// The first time beyond a step.
fn end(step: usize) -> u64 {
    let (row, within) = (step as u64 / STEPS, step as u64 % STEPS);
    match row {
        0 => within + 1,
        row => (STEPS + within + 1).saturating_mul(1 << (row - 1)),
    }
}

impl Latencies {
    /// With room for any time, so that noting one takes no memory.
    pub(super) fn ready() -> Self {
        Self {
            counts: vec![0; step(u64::MAX) + 1],
        }
    }

    #[inline]
    pub(super) fn note(&mut self, nanos: u64) {
        self.counts[step(nanos)] += 1;
    }

    /// These and the others.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The time within which this part of the operations was done, rounded up to its step. `None`:
    /// there are none.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        let wanted = ((all as f64 * part).ceil() as u64).max(1);
        let mut done = 0;
        let within = self.counts.iter().position(|count| {
            done += count;
            done >= wanted
        });
        within.map(|step| end(step) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_a_step_of_a_sixteenth_of_it() {
        for nanos in (0..5000).chain([1 << 40, u64::MAX / 3]) {
            let after = end(step(nanos));
            assert!(after > nanos, "{nanos} {after}");
            assert!(
                after as f64 <= nanos as f64 * 17.0 / 16.0 + 1.0,
                "{nanos} {after}"
            );
            assert!(nanos == 0 || step(nanos) >= step(nanos - 1));
        }
        assert_eq!(step(u64::MAX) + 1, Latencies::ready().counts.len());
    }

    #[test]
    fn quantiles_are_of_all_that_were_merged() {
        let mut all = Latencies::default();
        assert_eq!(all.quantile(0.99), None);
        for part in [0..500, 500..1000] {
            let mut some = Latencies::ready();
            part.for_each(|nanos| some.note(nanos));
            all.merge(&some);
        }
        let close = |part, nanos: f64| {
            let time = all.quantile(part).expect("some");
            assert!((nanos..nanos * 1.07).contains(&time), "{time}");
        };
        close(0.5, 499.0);
        close(0.99, 989.0);
        close(1.0, 999.0);
    }
}
