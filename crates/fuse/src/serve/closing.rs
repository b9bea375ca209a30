//! Open files between FLUSH and RELEASE.
//!
//! close(2) returns when FLUSH is answered. RELEASE, which ends the locks of the open file itself
//! (flock(2), `F_OFD_SETLK`), follows asynchronously, perhaps on another thread. A program that
//! closes a file and then locks it through another descriptor could so meet its own stale lock. An
//! open file that holds locks at its FLUSH is therefore recorded. A lock request that conflicts on
//! this inode first waits for the RELEASE, at most [`RELEASE_TIMEOUT`].
//!
//! FLUSH is sent for each descriptor of an open file. If other descriptors remain, no RELEASE
//! follows and the lock request fails after that time, correctly.
//!
//! # Locking
//! One mutex, a leaf. It is taken only for open files with locks of their own and on a lock
//! conflict.

use holdfast_core::types::Ino;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest time from a FLUSH to its RELEASE.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(250);

struct Flushed {
    ino: Ino,
    fh: u64,
    until: Instant,
}

/// Recently flushed open files that hold locks.
pub(super) struct Closing {
    pub(super) release_timeout: Duration,
    /// Guards the list.
    flushed: Mutex<Vec<Flushed>>,
    released: Condvar,
}

impl Default for Closing {
    fn default() -> Self {
        Self {
            release_timeout: RELEASE_TIMEOUT,
            flushed: Mutex::default(),
            released: Condvar::new(),
        }
    }
}

impl Closing {
    /// Records the FLUSH of an open file that holds locks.
    pub(super) fn flushed(&self, ino: Ino, fh: u64) {
        let now = Instant::now();
        let mut flushed = self.flushed.lock();
        flushed.retain(|file| file.until > now && file.fh != fh);
        flushed.push(Flushed {
            ino,
            fh,
            until: now + self.release_timeout,
        });
    }

    /// The open file was released, and its locks with it.
    pub(super) fn released(&self, fh: u64) {
        let mut flushed = self.flushed.lock();
        let before = flushed.len();
        flushed.retain(|file| file.fh != fh);
        if flushed.len() < before {
            self.released.notify_all();
        }
    }

    /// Waits until no recorded open file of this inode awaits its RELEASE. `false`: there was none.
    pub(super) fn wait_for_release(&self, ino: Ino) -> bool {
        let mut waited = false;
        let mut flushed = self.flushed.lock();
        // A file flushed after this call began is not waited for, so that the wait is bounded.
        let last = Instant::now() + self.release_timeout;
        while let Some(until) = flushed
            .iter()
            .filter(|file| file.ino == ino && file.until <= last)
            .map(|file| file.until)
            .min()
        {
            waited = true;
            if self.released.wait_until(&mut flushed, until).timed_out() {
                flushed.retain(|file| file.until > until);
            }
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const INO: Ino = Ino::ROOT;

    #[test]
    fn nothing_flushed_is_not_waited_for() {
        let closing = Closing::default();
        assert!(!closing.wait_for_release(INO));
    }

    #[test]
    fn a_release_ends_the_wait() {
        let closing = Closing {
            release_timeout: Duration::from_secs(60),
            ..Closing::default()
        };
        closing.flushed(INO, 7);
        let began = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(RELEASE_TIMEOUT / 10);
                closing.released(7);
            });
            assert!(closing.wait_for_release(INO));
        });
        assert!(began.elapsed() >= RELEASE_TIMEOUT / 10);
    }

    #[test]
    fn a_descriptor_that_was_not_the_last_is_waited_for_once_and_not_for_ever() {
        let closing = Closing::default();
        closing.flushed(INO, 7);
        thread::scope(|scope| {
            let flusher = scope.spawn(|| {
                // Flushed repeatedly, as by children that inherited the descriptor.
                for _ in 0..30 {
                    thread::sleep(RELEASE_TIMEOUT / 10);
                    closing.flushed(INO, 7);
                }
            });
            assert!(closing.wait_for_release(INO));
            assert!(!flusher.is_finished(), "waited for all of them");
            flusher.join().unwrap();
        });
    }

    #[test]
    fn other_inodes_are_not_waited_for() {
        let closing = Closing::default();
        closing.flushed(INO, 7);
        let other = Ino(99);
        assert!(!closing.wait_for_release(other));
    }
}
