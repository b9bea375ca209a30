//! Which frames of a leaf are used again, for an owner that forgets some.
//!
//! The marks are bits, as for inodes. A frame arrives *idle*, and its first use in a later epoch
//! clears that bit. A scan by the owner takes the idle frames. It moves the others to the *main*
//! set and sets their idle bits. A frame is *fresh* in the epoch in which it arrived and in the
//! next: uses in that time are the ones that it was brought for. A frame brought *ahead* of its use
//! is first used later. So a use writes nothing, unless there was a scan since the last one.
//!
//! A leaf is *marked* from the first frame on that arrives with a
//! [stamp](super::FramesLock::set_arrival). Without that all its marks are zero, a use reads one
//! word of them, and a scan takes every frame. A frame that is the root has no leaf, and no marks.
//!
//! *Invariants.* All marks are guesses: concurrent updates may be lost, and nothing else depends on
//! them. What a use reads lies on a line of the leaf that it needs anyway. Only scans, first uses,
//! and first arrivals after others write to that line.

use crate::frame_primitive::Mark;
use std::sync::atomic::Ordering::Relaxed;

mod leaf;
mod scan;

/// As many epochs, from that of the arrival on, count as one use.
const BURST: u8 = 2;

/// The marks of a leaf, in its first line.
#[derive(Default)]
pub(super) struct Aging {
    /// Frames of which the next use is to be noted. The bit of an empty slot may have any value.
    idle: Mark,
    /// Frames that were brought ahead of their use, and not used yet.
    prefetched: Mark,
    /// The epoch in which the fresh frames arrived, plus one; 0 if the leaf is not marked.
    fresh_epoch: Mark,
}

/// The marks of a leaf in a line that its writers write.
#[derive(Default)]
pub(super) struct Sets {
    main: Mark,
    /// Frames that arrived, or were first used, in `fresh_epoch`.
    fresh: Mark,
}

/// Why frames arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// They are used now.
    Used,
    /// They may be used soon.
    Prefetched,
}

/// The set that a scan takes frames from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Frames that were not used again, as far as earlier scans know.
    Probation,
    /// Frames that were used again.
    Main,
}

impl Aging {
    fn is_marked(&self) -> bool {
        self.fresh_epoch.load(Relaxed) != 0
    }

    fn set_epoch(&self, epoch: u8) {
        self.fresh_epoch.store(u64::from(epoch) + 1, Relaxed);
    }

    /// Are the frames in `fresh` still fresh in this epoch?
    fn is_recent(&self, epoch: u8) -> bool {
        let fresh = self.fresh_epoch.load(Relaxed);
        fresh != 0 && epoch.wrapping_sub((fresh - 1) as u8) < BURST
    }
}
