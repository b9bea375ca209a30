//! A value for each core, which its thread locks without an exchange, and which somebody who comes seldom
//! locks for all.
//!
//! A thread that has a slot for itself says by a plain store that it is inside, and looks whether all
//! is closed. Whoever closes says so, and makes every thread run a fence (membarrier(2)): then he sees all that are
//! inside, and whoever comes later sees that it is closed. The lopsided synchronisation of D. Dice, H. Huang and
//! M. Yang, *Asymmetric Dekker Synchronization*. Where there is no such call, all fence.
//!
//! Threads beyond the slots share some ordinary locks, which are taken for closing as well.
//!
//! *Invariants.* `inside` of a slot is written by the thread that has its number. Whenever `state` is
//! `LIGHT` nobody who closes relies on fences of those who come. Who closes has waited until every `inside` is 0
//! after it was closed.
//!
//! *Locking.* Who closes holds `turn`, then the shared locks. `sleepers` is a leaf.
#![expect(unsafe_code, reason = "a value behind a lock of our own")]

use crate::core_locks_primitive::{
    AtomicU64, Condvar, LOOKS, Mutex, MutexGuard, Ordering, RwLock, RwLockReadGuard,
    RwLockWriteGuard, SHARED, everywhere, fence, here, is_available, own_thread_slot, settle_down,
    slots, thread_slot,
};
use crate::padded::Padded;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Open, and those who come fence.
const HEAVY: u64 = 0;
/// Open, and those who come do not fence.
const LIGHT: u64 = 1;
/// Whoever comes has to wait.
const CLOSED: u64 = 2;

/// Its thread changes the value.
const ALONE: u64 = 1 << 32;

/// One `T` for each core: its own thread locks it by a store and two loads, everybody else's by closing all.
pub struct CoreLocks<T> {
    state: Padded<AtomicU64>,
    own: Box<[Padded<Slot<T>>]>,
    shared: Box<[Padded<RwLock<T>>]>,
    /// One closes at a time.
    turn: Mutex<()>,
    /// Those who wait until it is open, and who waits until nobody is inside.
    sleepers: Mutex<()>,
    awake: Condvar,
}

struct Slot<T> {
    /// How often its thread is inside to read, or [`ALONE`].
    inside: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: a value is reached by its slot's thread while `inside` says so, and by one who closed when all of
// these are 0: never by two at once, of whom one changes it.
unsafe impl<T: Send + Sync> Sync for CoreLocks<T> {}

impl<T> CoreLocks<T> {
    /// Makes every value by calling `init`, with its number.
    #[must_use]
    pub fn new(mut init: impl FnMut(usize) -> T) -> Self {
        let own = slots();
        let slot = |value| Slot {
            inside: AtomicU64::new(0),
            value: UnsafeCell::new(value),
        };
        Self {
            state: Padded(AtomicU64::new(if is_available() { LIGHT } else { HEAVY })),
            own: (0..own).map(|number| Padded(slot(init(number)))).collect(),
            shared: (own..own + SHARED)
                .map(|number| Padded(RwLock::new(init(number))))
                .collect(),
            turn: Mutex::new(()),
            sleepers: Mutex::new(()),
            awake: Condvar::new(),
        }
    }

    /// How many values there are on this machine.
    #[must_use]
    pub fn count() -> usize {
        slots() + SHARED
    }

    /// The calling thread's value, which nobody changes while the guard lives. It may be read again meanwhile, but
    /// neither changed nor closed by this thread.
    ///
    /// # Panics
    /// If the calling thread is changing it.
    #[inline]
    pub fn read(&self) -> Reading<'_, T> {
        let inside = match self.own_slot() {
            Some(slot) => {
                let before = slot.inside.load(Ordering::Relaxed);
                assert!(before < ALONE, "it is being changed");
                // Nobody closes while it is inside anyway.
                if before == 0 {
                    self.enter(slot, 1);
                } else {
                    slot.inside.store(before + 1, Ordering::Relaxed);
                }
                Inside::Own(self, slot)
            }
            // Who has it already does not wait for those who wait to close.
            None => Inside::Shared(self.shared_lock().read_recursive()),
        };
        Reading { inside }
    }

    /// The calling thread's value, to be changed. Not by a thread that has it already: one beyond the slots waits for itself.
    ///
    /// # Panics
    /// If the calling thread has it already, and a slot of its own.
    #[inline]
    pub fn lock(&self) -> Changing<'_, T> {
        let inside = match self.own_slot() {
            Some(slot) => {
                assert!(slot.inside.load(Ordering::Relaxed) == 0, "it is locked");
                self.enter(slot, ALONE);
                Inside::Own(self, slot)
            }
            None => Inside::Shared(self.shared_lock().write()),
        };
        Changing { inside }
    }

    /// Waits until nobody is inside, and keeps others out: all values.
    ///
    /// # Panics
    /// If the calling thread is inside.
    pub fn close(&self) -> Closed<'_, T> {
        let own = self.own_slot();
        assert!(
            own.is_none_or(|slot| slot.inside.load(Ordering::Relaxed) == 0),
            "closed from inside"
        );
        let turn = self.turn.lock();
        // Relaxed: what follows is a fence.
        let light = self.state.load(Ordering::Relaxed) == LIGHT;
        self.state.store(CLOSED, Ordering::Relaxed);
        let shared = self.shared.iter().map(|lock| lock.write()).collect();
        if !light {
            fence(Ordering::SeqCst);
        } else if !everywhere() {
            settle_down();
        }
        for slot in &self.own {
            self.wait_for(slot);
        }
        Closed {
            locks: self,
            shared,
            _turn: turn,
        }
    }

    #[inline]
    fn own_slot(&self) -> Option<&Slot<T>> {
        Some(&self.own.get(own_thread_slot()?)?.0)
    }

    fn shared_lock(&self) -> &RwLock<T> {
        &self.shared[thread_slot() % self.shared.len()].0
    }

    /// Says that the slot's thread, which is not, is inside.
    #[inline]
    fn enter(&self, slot: &Slot<T>, how: u64) {
        slot.inside.store(how, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == LIGHT {
            here();
            // Acquire: what was done to the value while it was closed.
            if self.state.load(Ordering::Acquire) == LIGHT {
                return;
            }
        }
        self.enter_slowly(slot, how);
    }

    #[cold]
    fn enter_slowly(&self, slot: &Slot<T>, how: u64) {
        loop {
            slot.inside.store(how, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let state = self.state.load(Ordering::Acquire);
            if state == LIGHT || state == HEAVY && !is_available() {
                return;
            }
            self.leave(slot, 0);
            if state == HEAVY {
                // From now on it is light.
                drop(self.close());
                continue;
            }
            self.wait_until_open();
        }
    }

    fn wait_until_open(&self) {
        // Relaxed: whoever goes on looks again.
        let is_open = || self.state.load(Ordering::Relaxed) != CLOSED;
        // Mostly it is closed for a moment.
        for _ in 0..LOOKS {
            if is_open() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleeping = self.sleepers.lock();
        while !is_open() {
            self.awake.wait(&mut sleeping);
        }
    }

    /// The slot's thread goes out; `inside`: what is left of it.
    #[inline]
    fn leave(&self, slot: &Slot<T>, inside: u64) {
        // Release: whoever closes sees what was done to the value.
        slot.inside.store(inside, Ordering::Release);
        here();
        if self.state.load(Ordering::Relaxed) != LIGHT {
            self.wake();
        }
    }

    /// Tells those who may wait.
    #[cold]
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == CLOSED {
            let _sleeping = self.sleepers.lock();
            self.awake.notify_all();
        }
    }

    /// It is closed: waits until the slot's thread is not inside.
    fn wait_for(&self, slot: &Slot<T>) {
        // Acquire: what that thread did to the value.
        let is_out = || slot.inside.load(Ordering::Acquire) == 0;
        for _ in 0..LOOKS {
            if is_out() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleeping = self.sleepers.lock();
        while !is_out() {
            self.awake.wait(&mut sleeping);
        }
    }
}

impl<T> fmt::Debug for CoreLocks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreLocks").finish_non_exhaustive()
    }
}

enum Inside<'l, T, S> {
    Own(&'l CoreLocks<T>, &'l Slot<T>),
    Shared(S),
}

/// A value that its thread reads. It stays with that thread.
pub struct Reading<'l, T> {
    inside: Inside<'l, T, RwLockReadGuard<'l, T>>,
}

/// A value that its thread changes. It stays with that thread.
pub struct Changing<'l, T> {
    inside: Inside<'l, T, RwLockWriteGuard<'l, T>>,
}

/// All values: nobody else has any.
pub struct Closed<'l, T> {
    locks: &'l CoreLocks<T>,
    shared: Vec<RwLockWriteGuard<'l, T>>,
    _turn: MutexGuard<'l, ()>,
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.inside {
            // SAFETY: this thread is inside to read, so nobody changes the slot's value.
            Inside::Own(_, slot) => unsafe { &*slot.value.get() },
            Inside::Shared(guard) => guard,
        }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Inside::Own(locks, slot) = self.inside {
            let inside = slot.inside.load(Ordering::Relaxed);
            locks.leave(slot, inside - 1);
        }
    }
}

impl<T> Deref for Changing<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.inside {
            // SAFETY: this thread is inside alone, and this is its only guard.
            Inside::Own(_, slot) => unsafe { &*slot.value.get() },
            Inside::Shared(guard) => guard,
        }
    }
}

impl<T> DerefMut for Changing<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.inside {
            // SAFETY: this thread is inside alone, and this is its only guard.
            Inside::Own(_, slot) => unsafe { &mut *slot.value.get() },
            Inside::Shared(guard) => guard,
        }
    }
}

impl<T> Drop for Changing<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Inside::Own(locks, slot) = self.inside {
            locks.leave(slot, 0);
        }
    }
}

impl<T> Closed<'_, T> {
    /// All values, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let own = self.locks.own.iter();
        // SAFETY: it is closed, so nobody is inside; it is borrowed, so nobody has it from `iter_mut`.
        let own = own.map(|slot| unsafe { &*slot.value.get() });
        own.chain(self.shared.iter().map(|guard| &**guard))
    }

    /// The first of all values.
    #[must_use]
    pub fn first(&self) -> &T {
        // SAFETY: it is closed, so nobody is inside; it is borrowed, so nobody has it from `iter_mut`.
        unsafe { &*self.locks.own[0].value.get() }
    }

    /// All values, in the order of their numbers, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let own = self.locks.own.iter();
        // SAFETY: it is closed, so nobody is inside; it is borrowed for this alone, and each slot comes once.
        let own = own.map(|slot| unsafe { &mut *slot.value.get() });
        own.chain(self.shared.iter_mut().map(|guard| &mut **guard))
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        let state = if is_available() { LIGHT } else { HEAVY };
        // Release: whoever comes sees what was done to the values.
        self.locks.state.store(state, Ordering::Release);
        let _sleeping = self.locks.sleepers.lock();
        self.locks.awake.notify_all();
    }
}

macro_rules! shown {
    ($($guard:ident)*) => {$(
        impl<T> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($guard)).finish_non_exhaustive()
            }
        }
    )*};
}
shown!(Reading Changing Closed);
