//! Loom's atomics under the names that the index uses, small sizes, and a watch over its items.

pub(crate) use atomic::{AtomicPtr, AtomicU32, AtomicU64};
pub(crate) use lock::Lock;
pub(crate) use loom::sync::atomic::{Ordering, fence};

use std::alloc::Layout;
use std::cell::RefCell;

/// Three slots: the fourth name makes a table.
pub(crate) const CLASS_SMALL: u32 = 0;

pub(crate) const BUCKET_SLOTS: usize = 2;

pub(crate) const REACH: usize = 1;

/// Two buckets: few names split a segment.
pub(crate) const SIZE_LOG_MAX: u32 = 1;

pub(crate) const MODEL: bool = true;

/// Loom's atomics are not made in constants.
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility fn $($function)*
    };
}
pub(crate) use constant;

pub(crate) fn pause(_looks: u32) {
    loom::thread::yield_now();
}

/// Every run is the same.
pub(crate) fn random() -> u64 {
    0x5EED_5EED_5EED_5EED
}

#[cfg(test)]
pub(crate) fn run(test: fn()) {
    loom::model(test);
}

std::thread_local! {
    // The threads of a model are one thread of the system.
    static GRAVES: RefCell<Vec<(*mut u8, Layout)>> = RefCell::default();
}

/// Keeps the memory until the end of the execution: a late access finds what `End` has left.
pub(crate) unsafe fn dealloc(memory: *mut u8, layout: Layout) {
    GRAVES.with_borrow_mut(|graves| graves.push((memory, layout)));
}

/// Frees what was kept; called between executions.
pub(crate) fn free() {
    for (memory, layout) in GRAVES.take() {
        // SAFETY: passed to `dealloc`, once; the execution is over.
        unsafe { std::alloc::dealloc(memory, layout) };
    }
}

/// Watches the end of an atomic: an access that is not ordered before it, or a later one, is an
/// error.
pub(crate) trait End {
    fn end(&self);
}

mod atomic {
    use super::{End, lock};
    use loom::sync::atomic::{self, Ordering};
    use std::cell::UnsafeCell;

    /// Loom remembers only the last access of a location. After a load that is a step, it would not
    /// try other orders of the store that follows. Only the holder of the lock stores, so its loads
    /// are no steps. Loom checks that no other thread stores meanwhile.
    macro_rules! atomic {
        ($name:ident $(<$generic:ident>)?: $value:ty) => {
            pub(crate) struct $name $(<$generic>)? (UnsafeCell<atomic::$name $(<$generic>)?>);

            // SAFETY: only `end` enters the cell, when no thread uses it any more.
            unsafe impl $(<$generic>)? Send for $name $(<$generic>)? {}
            // SAFETY: as above.
            unsafe impl $(<$generic>)? Sync for $name $(<$generic>)? {}

            impl $(<$generic>)? $name $(<$generic>)? {
                pub(crate) fn new(value: $value) -> Self {
                    Self(UnsafeCell::new(atomic::$name::new(value)))
                }

                fn inner(&self) -> &atomic::$name $(<$generic>)? {
                    // SAFETY: shared but for `end`, which comes last.
                    unsafe { &*self.0.get() }
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    if lock::is_mine() {
                        // SAFETY: loom checks it.
                        unsafe { self.inner().unsync_load() }
                    } else {
                        self.inner().load(order)
                    }
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.inner().store(value, order);
                }
            }

            impl $(<$generic>)? End for $name $(<$generic>)? {
                fn end(&self) {
                    // SAFETY: no thread uses it any more; loom checks it.
                    unsafe { &mut *self.0.get() }.with_mut(|_| ());
                }
            }
        };
    }

    atomic!(AtomicPtr<T>: *mut T);
    atomic!(AtomicU32: u32);
    atomic!(AtomicU64: u64);
}

mod lock {
    use loom::sync::{Mutex, MutexGuard};
    use loom::thread::{self, ThreadId};
    use std::cell::{RefCell, UnsafeCell};
    use std::mem::transmute;

    std::thread_local! {
        // The threads that hold a lock.
        static HOLDERS: RefCell<Vec<ThreadId>> = RefCell::default();
    }

    pub(super) fn is_mine() -> bool {
        let me = thread::current().id();
        HOLDERS.with_borrow(|holders| holders.contains(&me))
    }

    /// A lock without guards for its users: it has its own.
    pub(crate) struct Lock {
        // Before the mutex, which it borrows. Only the holder of the lock touches it.
        guard: UnsafeCell<Option<MutexGuard<'static, ()>>>,
        mutex: Box<Mutex<()>>,
    }

    // SAFETY: `guard` belongs to the holder of the lock.
    unsafe impl Sync for Lock {}
    // SAFETY: the threads of a model are one thread of the system.
    unsafe impl Send for Lock {}

    impl Lock {
        pub(crate) fn new() -> Self {
            Self {
                guard: UnsafeCell::new(None),
                mutex: Box::new(Mutex::new(())),
            }
        }

        pub(crate) fn lock(&self) {
            let guard = self.mutex.lock().expect("a panic ends the model");
            // SAFETY: the mutex is boxed, and its owner drops the guard first.
            let guard: MutexGuard<'static, ()> = unsafe { transmute(guard) };
            // SAFETY: just locked.
            unsafe { *self.guard.get() = Some(guard) };
            let me = thread::current().id();
            HOLDERS.with_borrow_mut(|holders| holders.push(me));
        }

        /// # Safety
        /// The caller has locked it.
        pub(crate) unsafe fn unlock(&self) {
            let me = thread::current().id();
            HOLDERS.with_borrow_mut(|holders| {
                let place = holders.iter().rposition(|holder| *holder == me);
                holders.swap_remove(place.expect("locked"));
            });
            // SAFETY: still locked by the caller.
            let guard = unsafe { (*self.guard.get()).take() };
            drop(guard);
        }
    }

    /// What an execution that failed has left behind.
    pub(crate) fn forget() {
        HOLDERS.take();
    }
}
pub(crate) use lock::forget as forget_locks;

/// An item's bytes are watched as one. A read that is not ordered after the allocation, or a free
/// that is not ordered after the reads, is an error.
pub(crate) mod memory {
    use loom::cell::UnsafeCell;
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::ptr::NonNull;

    std::thread_local! {
        static CELLS: RefCell<HashMap<usize, UnsafeCell<()>>> = RefCell::default();
    }

    pub(crate) fn made<T>(start: NonNull<T>) {
        let cell = UnsafeCell::new(());
        let before = CELLS.with_borrow_mut(|cells| cells.insert(start.addr().get(), cell));
        assert!(before.is_none(), "made twice");
    }

    pub(crate) fn read<T>(start: NonNull<T>) {
        CELLS.with_borrow(|cells| {
            let cell = cells.get(&start.addr().get());
            cell.expect("an item that is still there").with(|_| ());
        });
    }

    pub(crate) fn ended<T>(start: NonNull<T>) {
        CELLS.with_borrow_mut(|cells| {
            let cell = cells.remove(&start.addr().get());
            cell.expect("an item that is still there").with_mut(|_| ());
        });
    }

    /// Items that exist.
    pub(crate) fn left() -> usize {
        CELLS.with_borrow(HashMap::len)
    }

    pub(crate) fn forget() {
        CELLS.take();
    }
}
