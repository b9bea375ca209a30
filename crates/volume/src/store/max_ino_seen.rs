//! The highest number of an inode that there is, or was.
//!
//! *Invariant.* A number of `owned` is written by one thread at a time, the one that has the slot for itself: so
//! it needs no exchange. Threads beyond the slots share one.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_sync::PerCore;
use holdfast_types::Ino;

/// The highest number that each thread has met.
#[derive(Debug)]
pub(super) struct MaxIno {
    owned: PerCore<AtomicU64>,
    shared: AtomicU64,
}

impl MaxIno {
    /// So far it is this one.
    pub(super) fn starting_at(ino: Ino) -> Self {
        Self {
            owned: PerCore::default(),
            shared: AtomicU64::new(ino.0),
        }
    }

    /// There is an inode with this number, or was.
    #[inline]
    pub(super) fn met(&self, ino: Ino) {
        // Relaxed, here and below: who needs it exactly has closed the gate.
        match self.owned.own() {
            Some(last) if last.load(Ordering::Relaxed) < ino.0 => {
                last.store(ino.0, Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                self.shared.fetch_max(ino.0, Ordering::Relaxed);
            }
        }
    }

    /// The highest of all.
    pub(super) fn get(&self) -> u64 {
        let all = self.owned.iter().chain([&self.shared]);
        all.map(|ino| ino.load(Ordering::Relaxed))
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn it_is_the_highest_that_any_of_many_threads_met() {
        let max_ino_seen = MaxIno::starting_at(Ino(17));
        assert_eq!(max_ino_seen.get(), 17);
        thread::scope(|scope| {
            // More than there are slots, some of which are dealt again.
            for thread in 0..600_u64 {
                let max_ino_seen = &max_ino_seen;
                scope.spawn(move || {
                    for step in [3, 9, 5, 1] {
                        max_ino_seen.met(Ino(thread * 10 + step));
                    }
                    assert!(max_ino_seen.get() >= thread * 10 + 9);
                });
            }
        });
        assert_eq!(max_ino_seen.get(), 5999);
    }
}
