//! What happens in a round, beside what its threads do.

use std::time::Duration;

use holdfast_types::Errno;

use crate::device::{DeviceCall, DeviceFault, Effect};
use crate::rng::Rng;

/// In every second round a fault strikes one of the first calls of its kind, in turn.
const FIRST: u64 = 150;
/// Of so many rounds one has a volume that is nearly full, and no fault.
const CROWDED: u64 = 8;

/// A round.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What the threads do follows from it.
    pub(super) seed: u64,
    pub(super) faults: Vec<DeviceFault>,
    /// When the volume commits by itself.
    pub(super) every: Option<Duration>,
    /// Is it closed at the end, as far as it can be?
    pub(super) closes: bool,
}

impl Plan {
    /// That of a number.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut rng = Rng::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let faults = match number % CROWDED {
            0 => 0,
            _ => 1 + rng.below(3),
        };
        let first = |number: u64| (number % 2 == 1).then_some(number / 2 % FIRST);
        let faults = (0..faults).map(|nth| fault(&mut rng, first(number).filter(|_| nth == 0)));
        let faults = faults.collect();
        let every = [None, Some(2), Some(15)];
        Self {
            faults,
            every: rng.pick(&every).map(Duration::from_millis),
            closes: rng.one_in(4),
            seed: rng.bits(),
        }
    }
}

/// One fault, of a call with this number if it is given.
fn fault(rng: &mut Rng, after: Option<u64>) -> DeviceFault {
    use DeviceCall::{Flush, Read, Write};
    let call = *rng.pick(&[
        Some(Write),
        Some(Write),
        Some(Write),
        Some(Flush),
        Some(Read),
        None,
    ]);
    let effect = match rng.below(10) {
        0..4 => Effect::Error(*rng.pick(&[Errno::EIO, Errno::EIO, Errno::ENOSPC])),
        4..6 => Effect::Torn {
            sectors: rng.below(9),
            error: Some(Errno::EIO),
        },
        6..8 => Effect::Panic,
        _ if rng.one_in(60) => Effect::Slow { millis: 1000 },
        _ => Effect::Slow {
            millis: 1 + rng.below(20),
        },
    };
    // What is torn or unwinds does so where it has a meaning: a read that unwinds is the caller's
    // own.
    let call = match effect {
        Effect::Torn { .. } => Some(Write),
        Effect::Panic if call == Some(Read) || call.is_none() => Some(Write),
        _ => call,
    };
    let times = match (rng.below(3), effect) {
        (0, _) => Some(1),
        // What is slow for good would only take long.
        (1, _) | (_, Effect::Slow { .. }) => Some(2 + rng.below(5)),
        _ => None,
    };
    let often = match call {
        Some(Flush) => 20,
        Some(Read) => 40,
        _ => FIRST,
    };
    DeviceFault {
        call,
        after: after.unwrap_or_else(|| rng.below(often)) % often,
        times,
        effect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_fixes_a_round_and_all_kinds_of_faults_come() {
        let plans = || (0..2000).map(|number| Plan::of(7, number));
        assert!(plans().zip(plans()).all(|(one, other)| {
            (one.seed, &one.faults, one.every) == (other.seed, &other.faults, other.every)
        }));
        let faults: Vec<DeviceFault> = plans().flat_map(|plan| plan.faults).collect();
        let some = |is: &dyn Fn(&DeviceFault) -> bool| faults.iter().any(is);
        assert!(some(
            &|it| it.effect == Effect::Panic && it.call == Some(DeviceCall::Flush)
        ));
        assert!(some(&|it| it.effect == Effect::Slow { millis: 1000 }));
        assert!(some(
            &|it| matches!(it.effect, Effect::Torn { .. }) && it.times.is_none()
        ));
        assert!(some(&|it| it.call == Some(DeviceCall::Read)));
        let after = |at: u64| some(&|it: &DeviceFault| it.after == at);
        assert!((0..FIRST).all(after));
        assert!(plans().any(|plan| plan.faults.is_empty()));
    }
}
