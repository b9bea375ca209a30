//! A sparse image on a host that has less room than the image promises.
//!
//! What was never written takes room of the host when it is, and the host may give it to somebody else first. So no more
//! blocks are promised than the host has room for: the others are *withheld*, and an operation that needs one of them is told `ENOSPC`
//! before anything is changed, as on a volume that is full. A write that fails for want of room would stop the volume.
//!
//! *Invariant*, at each look: free blocks that are promised to nobody and not withheld, those that are set aside for nodes
//! included, and what may still be written to blocks in use, are no more than the host has left. Between looks others may
//! take of that: a core's [credit](super::Pool) is a small part of what there was at the last one.
//!
//! Blocks that were written once and are free again have room, but which they are nobody knows. When room is short the
//! host is told which blocks are free (they are discarded), so that it has their room again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use holdfast_device::Room;

use crate::BLOCK;
use crate::space::Space;

const BLOCK_LEN: u64 = BLOCK as u64;
/// The part of what a host has left that is not counted on: it needs some of it to note where the image lies.
const MARGIN_PART: u64 = 64;
/// Milliseconds for which a look is good enough for those that do not need it badly.
const LOOK_EVERY: u64 = 10;
/// Blocks with room that are free, from which on telling the host of them is worth a look at all groups.
const WORTH_DISCARDING: u64 = 256;

/// When the host was looked at, and what telling it brought.
#[derive(Debug)]
pub(super) struct Host {
    opened: Instant,
    /// Milliseconds from then to the last look.
    looked: AtomicU64,
    /// Free blocks that had room and kept it, when the host was told of all of them.
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
    /// Is the last look too old? Then this is the next.
    pub(super) fn is_due(&self) -> bool {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Relaxed: of two that look at once neither is wrong.
        let is_due = now.saturating_sub(self.looked.load(Relaxed)) >= LOOK_EVERY;
        if is_due {
            self.looked.store(now, Relaxed);
        }
        is_due
    }

    /// Are there so many more free blocks with room than were left when the host was told of all, that telling it again is worth it?
    pub(super) fn is_worth_telling(&self, excess: u64) -> bool {
        excess >= self.kept.load(Relaxed).saturating_add(WORTH_DISCARDING)
    }

    /// The host was told of all free blocks, and so many kept their room. `u64::MAX`: it takes no discards.
    pub(super) fn was_told(&self, kept: u64) {
        self.kept.store(kept, Relaxed);
    }
}

/// How an image uses its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image {
    /// Blocks that data and nodes may lie in.
    pub(super) total: u64,
    /// The others.
    pub(super) own: u64,
    /// Free blocks that were promised.
    pub(super) promised: u64,
}

impl Image {
    /// Blocks with room that data and nodes may lie in.
    fn given(&self, room: Room) -> u64 {
        (room.given / BLOCK_LEN).saturating_sub(self.own)
    }

    /// Of `ours`, the free blocks that are promised to nobody, how many may be.
    fn allowed(&self, room: Room, ours: u64) -> u64 {
        let left = room.left / BLOCK_LEN;
        let left = left - left / MARGIN_PART;
        let used = self.total.saturating_sub(ours + self.promised);
        // Blocks in use that have no room yet: allocated and not written, or on their way.
        let owed = used.saturating_sub(self.given(room)) + self.promised;
        left.saturating_sub(owed).min(ours)
    }

    /// Withholds what the host has no room for; gives how many blocks that is. `room`: as its device tells.
    pub(super) fn withhold(&self, space: &Space, room: Option<Room>) -> u64 {
        match room {
            Some(room) => space.withhold(|ours| ours - self.allowed(room, ours)),
            None => space.withhold(|_| 0),
        }
    }

    /// Free blocks that have room, at least.
    pub(super) fn excess(&self, room: Room, ours: u64) -> u64 {
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
        promised: 30,
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
