//! A lock of one byte that is given back by a plain store.
//!
//! As a [`Latch`](crate::Latch) it spares the exchange that gives a lock back, and waits until all that was stored
//! under it has reached the cache; but it has room beside other things, and no value: an inode has two. Those who sleep
//! do so in rooms that all bolts share.
//!
//! *Invariant.* Who made the byte something else than [`FREE`] is alone until he stores that. That somebody
//! sleeps can be overwritten by that store, if he came in the moment before: so sleepers look again by themselves
//! after a while.
//!
//! *Locking.* A room's lock is a leaf.
#![expect(unsafe_code, reason = "a lock that can be given back without a guard")]

use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and perhaps somebody sleeps.
const AWAITED: u8 = 2;

/// How often somebody looks before he sleeps.
const LOOKS: usize = 100;

/// How long who sleeps can miss that it was given back.
const NAP: Duration = Duration::from_millis(1);

/// Where those sleep whose bolts' addresses fall together.
struct Room {
    sleeping: Mutex<()>,
    awake: Condvar,
}

static ROOMS: [Room; 64] = [const {
    Room {
        sleeping: Mutex::new(()),
        awake: Condvar::new(),
    }
}; 64];

/// A lock without a value, in one byte, that costs one exchange.
#[derive(Default)]
pub struct Bolt(AtomicU8);

impl Bolt {
    /// A free one.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(FREE))
    }

    /// Waits until it is free, and takes it. (Never twice in one thread.)
    #[inline]
    pub fn lock(&self) -> BoltGuard<'_> {
        self.take();
        BoltGuard::of(self)
    }

    /// Takes it if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<BoltGuard<'_>> {
        self.try_take().then(|| BoltGuard::of(self))
    }

    /// As [`lock`](Self::lock), without a guard.
    #[inline]
    pub(crate) fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    /// As [`try_lock`](Self::try_lock), without a guard.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        // Acquire: what was done by whoever had it before.
        self.0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The caller has taken it.
    #[inline]
    pub(crate) unsafe fn give(&self) {
        // Release: whoever has it next sees what was done.
        if self.0.load(Ordering::Relaxed) == TAKEN {
            self.0.store(FREE, Ordering::Release);
        } else {
            self.wake();
        }
    }

    fn room(&self) -> &'static Room {
        let address = std::ptr::from_ref(self).addr() as u64;
        let hash = address.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &ROOMS[(hash >> (u64::BITS - ROOMS.len().ilog2())) as usize]
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if self.0.load(Ordering::Relaxed) == FREE && self.try_take() {
                return;
            }
        }
        let room = self.room();
        let mut sleeping = room.sleeping.lock();
        // Whoever gets it so wakes others in his turn: there may be some.
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            room.awake.wait_for(&mut sleeping, NAP);
        }
    }

    #[cold]
    fn wake(&self) {
        let room = self.room();
        self.0.store(FREE, Ordering::Release);
        // From here on it may be gone, with what it is in.
        let _sleeping = room.sleeping.lock();
        // Of whichever bolt they are.
        room.awake.notify_all();
    }
}

impl fmt::Debug for Bolt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bolt").finish_non_exhaustive()
    }
}

/// Whoever has this has the lock.
#[must_use = "it is given back when this is dropped"]
pub struct BoltGuard<'b> {
    bolt: &'b Bolt,
    own_thread: PhantomData<*mut ()>,
}

impl<'b> BoltGuard<'b> {
    /// The caller has taken it.
    fn of(bolt: &'b Bolt) -> Self {
        Self {
            bolt,
            own_thread: PhantomData,
        }
    }
}

impl Drop for BoltGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken for this guard.
        unsafe { self.bolt.give() };
    }
}

impl fmt::Debug for BoltGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoltGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn whoever_has_it_is_alone_and_nobody_waits_for_ever() {
        let bolts = [const { Bolt::new() }; 3];
        // Pairs that differ while one of them is changed.
        let pairs = [const { [const { AtomicU64::new(0) }; 2] }; 3];
        let (threads, rounds) = (8, 20_000);
        thread::scope(|scope| {
            for first in 0..threads {
                let (bolts, pairs) = (&bolts, &pairs);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let at = (first + round) % bolts.len();
                        let _locked = bolts[at].lock();
                        let [one, other] = &pairs[at];
                        let count = one.load(Ordering::Relaxed);
                        assert_eq!(other.load(Ordering::Relaxed), count);
                        one.store(count + 1, Ordering::Relaxed);
                        if round % 1000 == 0 {
                            // Others fall asleep.
                            thread::sleep(Duration::from_micros(50));
                        }
                        other.store(count + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        let sum: u64 = pairs
            .iter()
            .map(|[one, _]| one.load(Ordering::Relaxed))
            .sum();
        assert_eq!(sum, (threads * rounds) as u64);
        assert!(bolts.iter().all(|bolt| bolt.try_lock().is_some()));
    }

    #[test]
    fn who_tries_does_not_wait() {
        let bolt = Bolt::new();
        let held = bolt.lock();
        assert!(bolt.try_lock().is_none());
        drop(held);
        assert!(bolt.try_lock().is_some());
    }

    #[test]
    fn who_sleeps_is_woken() {
        let bolt = Bolt::new();
        let mut waits: Vec<Duration> = (0..15)
            .map(|_| {
                let held = bolt.lock();
                thread::scope(|scope| {
                    let sleeper = scope.spawn(|| {
                        drop(bolt.lock());
                        Instant::now()
                    });
                    thread::sleep(Duration::from_millis(5));
                    let given = Instant::now();
                    drop(held);
                    sleeper.join().unwrap().saturating_duration_since(given)
                })
            })
            .collect();
        waits.sort_unstable();
        assert!(waits[0] < Duration::from_secs(1), "{waits:?}");
    }
}
