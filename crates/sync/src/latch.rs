//! A lock that is given back by a plain store.
//!
//! The exchange by which others are given back waits until all that was stored under them has reached the
//! cache: mostly longer than the lock was held. Here whoever gives it back looks for sleepers behind the store. It
//! may miss one who comes at that moment; so sleepers look again by themselves after a while.
//!
//! *Invariant.* Who set `taken` is alone with the value until he stores that it is free.
#![expect(unsafe_code, reason = "a value behind a lock of our own")]

use parking_lot::{Condvar, Mutex};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};
use std::time::Duration;

/// How often somebody looks before he sleeps.
const LOOKS: usize = 100;

/// How long who sleeps can miss that it was given back.
const NAP: Duration = Duration::from_millis(1);

/// A value behind a lock that costs one exchange.
#[derive(Default)]
pub struct Latch<T> {
    taken: AtomicBool,
    /// How many sleep, or are about to.
    sleepers: AtomicU32,
    sleeping: Mutex<()>,
    awake: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by who took the lock, one at a time.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    /// A free lock with this value behind it.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            sleeping: Mutex::new(()),
            awake: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until it is free, and takes it. (Never twice in one thread.)
    #[inline]
    pub fn lock(&self) -> LatchGuard<'_, T> {
        if !self.take() {
            self.wait();
        }
        LatchGuard { latch: self }
    }

    #[inline]
    fn take(&self) -> bool {
        // Acquire: what whoever had it before did to the value.
        let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
        self.taken
            .compare_exchange(false, true, order, failed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if !self.taken.load(Ordering::Relaxed) && self.take() {
                return;
            }
        }
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Whoever gives it back from now on sees that, but for one who is between his two steps.
        fence(Ordering::SeqCst);
        let mut sleeping = self.sleeping.lock();
        while !self.take() {
            self.awake.wait_for(&mut sleeping, NAP);
        }
        drop(sleeping);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn wake(&self) {
        let _sleeping = self.sleeping.lock();
        self.awake.notify_one();
    }
}

impl<T> fmt::Debug for Latch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latch").finish_non_exhaustive()
    }
}

/// Whoever has this has the lock.
pub struct LatchGuard<'l, T> {
    latch: &'l Latch<T>,
}

// SAFETY: it shows the value, and nothing of the lock.
unsafe impl<T: Sync> Sync for LatchGuard<'_, T> {}

impl<T> Deref for LatchGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock was taken for this guard.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for LatchGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock was taken for this guard.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for LatchGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: whoever has it next sees what was done to the value.
        self.latch.taken.store(false, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        if self.latch.sleepers.load(Ordering::Relaxed) != 0 {
            self.latch.wake();
        }
    }
}

impl<T> fmt::Debug for LatchGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatchGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn whoever_has_it_is_alone_and_nobody_waits_for_ever() {
        let latch = Latch::new((0_u64, 0_u64));
        let (threads, rounds) = (8, 20_000);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for round in 0..rounds {
                        let mut pair = latch.lock();
                        assert_eq!(pair.0, pair.1);
                        pair.0 += 1;
                        if round % 1000 == 0 {
                            // Others fall asleep.
                            thread::sleep(Duration::from_micros(50));
                        }
                        pair.1 += 1;
                    }
                });
            }
        });
        assert_eq!(latch.lock().1, threads * rounds);
        assert_eq!(latch.sleepers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_sleeps_is_woken() {
        let latch = Latch::new(0);
        let mut waits: Vec<Duration> = (0..15)
            .map(|_| {
                let held = latch.lock();
                thread::scope(|scope| {
                    let sleeper = scope.spawn(|| {
                        *latch.lock() += 1;
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
        assert_eq!(*latch.lock(), 15);
        assert!(waits[0] < Duration::from_secs(1), "{waits:?}");
    }
}
