//! The shares of metadata (inodes and names) and content in the memory limit.
//!
//! Each may use what the other leaves. If both want more, the border moves towards the one that
//! gains more by it: the one with more recent refaults, relative to what it holds. The ghosts cover
//! as much again as is held, so that is the hit rate of additional memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// Parts of the limit.
const PARTS: u64 = 256;
/// Metadata's parts at first, and the least that either has.
const FIRST: u64 = 128;
const LEAST: u64 = 32;
/// The border moves by this, after this number of refaults.
const STEP: u64 = 4;
const REFAULTS: u64 = 128;

/// The state of one of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// Bytes that it holds.
    pub(crate) held: u64,
    /// How often an evicted object was loaded again too soon.
    pub(crate) refaults: u64,
}

/// The border between both.
#[derive(Debug)]
pub(crate) struct Balance {
    parts: AtomicU64,
    /// Refaults of both at the last move.
    seen: Mutex<[u64; 2]>,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            parts: AtomicU64::new(FIRST),
            seen: Mutex::default(),
        }
    }
}

impl Balance {
    /// Bytes of a limit that metadata may use though content wants them.
    pub(crate) fn metadata(&self, limit: u64) -> u64 {
        (limit / PARTS).saturating_mul(self.parts.load(Relaxed))
    }

    /// Moves the border, if there were enough refaults since the last move.
    pub(crate) fn update(&self, metadata: Side, content: Side) {
        let Some(mut seen) = self.seen.try_lock() else {
            return;
        };
        let came = [
            metadata.refaults.saturating_sub(seen[0]),
            content.refaults.saturating_sub(seen[1]),
        ];
        if came[0] + came[1] < REFAULTS {
            return;
        }
        *seen = [metadata.refaults, content.refaults];
        // Each relative to what it holds; both sides are multiplied by the product.
        let [of_metadata, of_content] = [
            u128::from(came[0]) * u128::from(content.held.max(1)),
            u128::from(came[1]) * u128::from(metadata.held.max(1)),
        ];
        let parts = self.parts.load(Relaxed);
        let parts = if of_metadata > of_content + of_content / 4 {
            (parts + STEP).min(PARTS - LEAST)
        } else if of_content > of_metadata + of_metadata / 4 {
            (parts - STEP).max(LEAST)
        } else {
            parts
        };
        self.parts.store(parts, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 256 << 20;

    fn side(mib: u64, refaults: u64) -> Side {
        Side {
            held: mib << 20,
            refaults,
        }
    }

    #[test]
    fn the_border_moves_to_whom_loads_again_more_for_what_it_holds() {
        let balance = Balance::default();
        assert_eq!(balance.metadata(LIMIT), LIMIT / 2);
        balance.update(side(128, 100), side(128, 27));
        assert_eq!(
            balance.metadata(LIMIT),
            LIMIT / 2,
            "that is too little to tell"
        );
        balance.update(side(128, 100), side(128, 28));
        assert_eq!(balance.metadata(LIMIT), 132 << 20);
        balance.update(side(128, 200), side(128, 128));
        assert_eq!(balance.metadata(LIMIT), 132 << 20, "both as much");
        balance.update(side(16, 210), side(240, 1128));
        assert_eq!(
            balance.metadata(LIMIT),
            128 << 20,
            "a hundredfold for fifteen times the room"
        );
    }

    #[test]
    fn each_keeps_an_eighth() {
        let balance = Balance::default();
        (1..200).for_each(|round| balance.update(side(128, 0), side(128, round * 1000)));
        assert_eq!(balance.metadata(LIMIT), 32 << 20);
        let done = 199_000;
        (1..200).for_each(|round| balance.update(side(0, round * 1000), side(0, done)));
        assert_eq!(balance.metadata(LIMIT), 224 << 20);
        assert_eq!(balance.metadata(u64::MAX) / (u64::MAX / 256), 224);
    }
}
