//! A sparse image on a host with less free space than the image promises.
//!
//! A block that was never written takes host space when it is, and the host may have given that to
//! other files. So the allocator offers no more blocks than the host has space for; the others are
//! *withheld*. An operation that needs them fails with `ENOSPC` before it changes anything, as on a
//! full volume. A write that failed for want of space would stop the volume.
//!
//! *Invariant*, at each look: let `ours` be the free unreserved blocks that are not withheld, those
//! set aside for nodes included. `ours` plus the blocks in use that are not written yet are no more
//! than the host has left. Between looks others may take some of that: a core's
//! [allowance](super::Pool) is a small part of what there was at the last look.
//!
//! Blocks that were written and freed have host space, but it is unknown which they are. When space
//! is short, all free blocks are discarded, which returns their space to the host.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use holdfast_device::Room;

use crate::block::BLOCK;
use crate::space::Space;

const BLOCK_LEN: u64 = BLOCK as u64;
/// The part of the host's free space that is not counted on: the host needs some for its own
/// metadata.
const MARGIN_PART: u64 = 64;
/// Milliseconds for which a look suffices, unless space is short.
const LOOK_EVERY: u64 = 10;
/// Free blocks with host space from which on a discard is worth a look at all groups.
const WORTH_DISCARDING: u64 = 256;

/// The time of the last look, and the result of the last discard.
#[derive(Debug)]
pub(in crate::store) struct Host {
    opened: Instant,
    /// Milliseconds from `opened` to the last look.
    looked: AtomicU64,
    /// Free blocks that kept their host space at the last discard of all.
    kept: AtomicU64,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            opened: Instant::now(),
            looked: AtomicU64::new(0),
            kept: AtomicU64::new(0),
        }
    }
}

impl Host {
    /// Is a new look due? Then it counts as done.
    pub(super) fn is_due(&self) -> bool {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Relaxed: two threads may both look.
        let is_due = now.saturating_sub(self.looked.load(Relaxed)) >= LOOK_EVERY;
        if is_due {
            self.looked.store(now, Relaxed);
        }
        is_due
    }

    /// Are there enough free blocks with host space that a discard would return?
    pub(in crate::store) fn is_discard_worthwhile(&self, excess: u64) -> bool {
        excess >= self.kept.load(Relaxed).saturating_add(WORTH_DISCARDING)
    }

    /// All free blocks were discarded, and `kept` kept their space; `u64::MAX`: the device takes no
    /// discards.
    pub(in crate::store) fn set_kept(&self, kept: u64) {
        self.kept.store(kept, Relaxed);
    }
}

/// Use of an image's blocks.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Image {
    /// Blocks for data and nodes.
    pub(in crate::store) total: u64,
    /// The others.
    pub(in crate::store) own: u64,
    /// Reserved free blocks.
    pub(in crate::store) reserved: u64,
}

impl Image {
    /// Blocks for data and nodes that have host space.
    fn given(&self, room: Room) -> u64 {
        (room.given / BLOCK_LEN).saturating_sub(self.own)
    }

    /// How many of `ours`, the free unreserved blocks, may be offered.
    fn allowed(&self, room: Room, ours: u64) -> u64 {
        let left = room.left / BLOCK_LEN;
        let left = left - left / MARGIN_PART;
        let used = self.total.saturating_sub(ours + self.reserved);
        // Blocks in use without host space: not written yet, or in flight.
        let owed = used.saturating_sub(self.given(room)) + self.reserved;
        left.saturating_sub(owed).min(ours)
    }

    /// Withholds what the host has no space for; returns the number of blocks. `room`: as reported
    /// by the device.
    pub(super) fn withhold(&self, space: &Space, room: Option<Room>) -> u64 {
        match room {
            Some(room) => space.withhold(|ours| ours - self.allowed(room, ours)),
            None => space.withhold(|_| 0),
        }
    }

    /// Free blocks that have host space, at least.
    pub(in crate::store) fn excess(&self, room: Room, ours: u64) -> u64 {
        self.given(room)
            .saturating_sub(self.total.saturating_sub(ours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image {
        total: 10_000,
        own: 100,
        reserved: 30,
    };

    fn room(given: u64, left: u64) -> Room {
        Room {
            given: given * BLOCK_LEN,
            left: left * BLOCK_LEN,
        }
    }

    #[test]
    fn no_more_is_promised_than_the_host_has_left() {
        // 970 in use.
        let ours = 9000;
        assert_eq!(IMAGE.allowed(room(1070, 1 << 20), ours), ours);
        assert_eq!(IMAGE.allowed(room(1070, 6400), ours), 6300 - 30);
        // Some of what is in use was not written yet.
        assert_eq!(IMAGE.allowed(room(1000, 6400), ours), 6300 - 30 - 70);
        assert_eq!(IMAGE.allowed(room(0, 6400), ours), 6300 - 30 - 970);
        // What was written once and is free again may be elsewhere than what will be.
        assert_eq!(IMAGE.allowed(room(5000, 6400), ours), 6300 - 30);
        assert_eq!(IMAGE.allowed(room(5000, 0), ours), 0);
    }

    #[test]
    fn what_is_free_and_has_room_is_told_from_what_is_in_use() {
        assert_eq!(IMAGE.excess(room(1100, 0), 9000), 0);
        assert_eq!(IMAGE.excess(room(1107, 0), 9000), 7);
        assert_eq!(IMAGE.excess(room(0, 0), 9000), 0);
    }

    #[test]
    fn a_look_is_good_for_a_while() {
        let host = Host::default();
        host.looked.store(u64::MAX, Relaxed);
        assert!(!host.is_due());
        let host = Host {
            opened: Instant::now() - std::time::Duration::from_secs(1),
            ..Host::default()
        };
        assert!(host.is_due());
    }
}
