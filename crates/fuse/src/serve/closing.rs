//! Open files on their way out: closed by their program, not yet released by the kernel.
//!
//! close(2) returns when FLUSH is answered; RELEASE, which ends the locks of the open file itself
//! (flock(2), `F_OFD_SETLK`), follows without anybody waiting for it, and may be served by another
//! thread than the next request. A program that closes a file and then asks for its lock through
//! another descriptor would be refused by a lock that is no more. So an open file that still holds
//! locks when it is flushed is noted, and whoever meets a lock of that inode waits a little for
//! the RELEASE before it is refused.
//!
//! FLUSH comes at the close of each descriptor, of which a file may have several: then no RELEASE
//! follows, and whoever asks is refused after a moment, as he must be.
//!
//! # Locking
//! One mutex, held for a few comparisons; taken only for open files that hold locks of their own,
//! and when a lock is in the way.

use holdfast_core::types::Ino;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long after a FLUSH its RELEASE may be on its way.
const PATIENCE: Duration = Duration::from_millis(250);

struct Flushed {
    ino: Ino,
    fh: u64,
    until: Instant,
}

/// The open files with locks of their own that were flushed lately.
pub(super) struct Closing {
    pub(super) patience: Duration,
    /// Guards the list: as long as there are files with locks that were flushed lately.
    flushed: Mutex<Vec<Flushed>>,
    released: Condvar,
}

impl Default for Closing {
    fn default() -> Self {
        Self {
            patience: PATIENCE,
            flushed: Mutex::default(),
            released: Condvar::new(),
        }
    }
}

impl Closing {
    /// A descriptor of an open file that holds locks was closed.
    pub(super) fn flushed(&self, ino: Ino, fh: u64) {
        let now = Instant::now();
        let mut flushed = self.flushed.lock();
        flushed.retain(|file| file.until > now && file.fh != fh);
        flushed.push(Flushed {
            ino,
            fh,
            until: now + self.patience,
        });
    }

    /// The open file's locks are gone.
    pub(super) fn released(&self, fh: u64) {
        let mut flushed = self.flushed.lock();
        let before = flushed.len();
        flushed.retain(|file| file.fh != fh);
        if flushed.len() < before {
            self.released.notify_all();
        }
    }

    /// Waits until no lock of this inode is about to go. `false`: there was none.
    pub(super) fn settle(&self, ino: Ino) -> bool {
        let mut waited = false;
        let mut flushed = self.flushed.lock();
        // Files that are flushed meanwhile are not waited for: nobody must be kept for ever.
        let last = Instant::now() + self.patience;
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
        assert!(!closing.settle(INO));
    }

    #[test]
    fn a_release_ends_the_wait() {
        let closing = Closing {
            patience: Duration::from_secs(60),
            ..Closing::default()
        };
        closing.flushed(INO, 7);
        let began = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(PATIENCE / 10);
                closing.released(7);
            });
            assert!(closing.settle(INO));
        });
        assert!(began.elapsed() >= PATIENCE / 10);
    }

    #[test]
    fn a_descriptor_that_was_not_the_last_is_waited_for_once_and_not_for_ever() {
        let closing = Closing::default();
        closing.flushed(INO, 7);
        thread::scope(|scope| {
            let flusher = scope.spawn(|| {
                // Flushed again and again, as by children that inherited the descriptor.
                for _ in 0..30 {
                    thread::sleep(PATIENCE / 10);
                    closing.flushed(INO, 7);
                }
            });
            assert!(closing.settle(INO));
            assert!(!flusher.is_finished(), "waited for all of them");
            flusher.join().unwrap();
        });
    }

    #[test]
    fn other_inodes_are_not_waited_for() {
        let closing = Closing::default();
        closing.flushed(INO, 7);
        let other = Ino(99);
        assert!(!closing.settle(other));
    }
}
