//! Files whose blocks are being read: they stay where they are.
//!
//! A reader of the device holds no lock that a commit takes, and a commit may give blocks of a file another place
//! ([`gather`](crate::store::writeback::cluster)): what was read of the old one, once it is used again, would be another file's bytes.
//! That move only brings blocks together, so of a pinned file it is left out.
//!
//! *Invariant.* A pin is there before its reader passes the gate to learn where the blocks are. So a commit that has
//! closed the gate finds the pins of all who know places from before.

use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_sync::Padded;
use holdfast_types::Ino;

/// Files are told apart by this many numbers: by chance some are pinned with others.
const SLOTS: usize = 64;

/// How many read, by file.
#[derive(Debug)]
pub(in crate::store) struct Pins(Box<[Padded<AtomicU32>]>);

/// Keeps the blocks of a file in their places.
#[derive(Debug)]
pub(in crate::store) struct Pin<'p>(&'p AtomicU32);

impl Pins {
    /// None.
    pub(in crate::store) fn new() -> Self {
        Self((0..SLOTS).map(|_| Padded(AtomicU32::new(0))).collect())
    }

    fn of(&self, ino: Ino) -> &AtomicU32 {
        &self.0[ino.0 as usize % SLOTS]
    }

    /// Pins a file; before the reader passes the gate.
    pub(in crate::store) fn pin(&self, ino: Ino) -> Pin<'_> {
        let pins = self.of(ino);
        // Relaxed: the gate, which the reader passes next, orders it before a commit that closes it after that.
        pins.fetch_add(1, Ordering::Relaxed);
        Pin(pins)
    }

    /// Is a file pinned? Asked with the gate closed.
    pub(in crate::store) fn holds(&self, ino: Ino) -> bool {
        // Acquire: pairs with the release of a pin, behind the last read of the old places.
        self.of(ino).load(Ordering::Acquire) > 0
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_pinned_until_the_last_reader_is_done() {
        let pins = Pins::new();
        let (one, other) = (Ino(70), Ino(71));
        let first = pins.pin(one);
        let second = pins.pin(one);
        assert!(pins.holds(one) && !pins.holds(other));
        drop(first);
        assert!(pins.holds(one));
        drop(second);
        assert!(!pins.holds(one));
    }
}
