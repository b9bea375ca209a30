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

use crate::bolt_primitive::{AtomicU8, LOOKS, Ordering, Room, constant, look_again};
use std::fmt;
use std::marker::PhantomData;

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and perhaps somebody sleeps.
const AWAITED: u8 = 2;

/// A lock without a value, in one byte, that costs one exchange.
#[derive(Default)]
pub struct Bolt(AtomicU8);

impl Bolt {
    constant! {
        /// A free one.
        #[must_use]
        pub fn new() -> Self {
            Self(AtomicU8::new(FREE))
        }
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
        Room::of(std::ptr::from_ref(self).addr())
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            look_again();
            if self.0.load(Ordering::Relaxed) == FREE && self.try_take() {
                return;
            }
        }
        // Whoever gets it so wakes others in his turn: there may be some.
        self.room()
            .sleep_while(|| self.0.swap(AWAITED, Ordering::Acquire) != FREE);
    }

    #[cold]
    fn wake(&self) {
        let room = self.room();
        self.0.store(FREE, Ordering::Release);
        // From here on it may be gone, with what it is in.
        room.wake_all();
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
