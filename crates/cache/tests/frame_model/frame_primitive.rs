//! Loom's atomics and locks under the names that the frames use, and a watch over their memory.

pub(crate) use lock::{Mutex, MutexGuard};
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
/// A word of guesses, which is no step.
pub(crate) use std::sync::atomic::AtomicU64 as Mark;

/// Two slots a node: enough for neighbours, and for a node above.
pub(crate) const FAN_SHIFT: u32 = 1;

/// Loom's atomics are not made in constants.
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility fn $($function)*
    };
}
pub(crate) use constant;

/// Loom remembers only the last access of a location. After a load that is a step, it would not try
/// other orders of the store that follows. This load is no step, and checked: no thread may store
/// meanwhile.
pub(crate) trait Own {
    type Value;

    fn own(&self) -> Self::Value;
}

macro_rules! own {
    ($([$($generic:tt)*] $atomic:ty => $value:ty;)*) => {$(
        impl $($generic)* Own for $atomic {
            type Value = $value;

            fn own(&self) -> $value {
                // SAFETY: only the caller stores; loom checks it.
                unsafe { self.unsync_load() }
            }
        }
    )*};
}

own! {
    [] AtomicU32 => u32;
    [] AtomicU64 => u64;
    [<T>] AtomicPtr<T> => *mut T;
}

mod lock {
    pub(crate) use loom::sync::MutexGuard;

    /// A lock without poisoning, like the real one.
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the model")
        }
    }
}

/// Every byte of every frame has a cell that loom watches. A read that is not ordered after the
/// write, or a write or a free that is not ordered after the reads, is an error.
pub(crate) mod memory {
    use loom::cell::UnsafeCell;
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::ptr::NonNull;

    /// Bytes of each frame that are watched one by one; after them those of a sector are watched
    /// together.
    const WATCHED: usize = 24;
    const SECTOR: usize = 512;
    const CELLS_EACH: usize = WATCHED + 8;

    std::thread_local! {
        // The threads of a model are one thread of the system. An address that is freed and
        // allocated again has new cells.
        static CELLS: RefCell<HashMap<usize, Vec<UnsafeCell<()>>>> = RefCell::default();
    }

    fn each(start: NonNull<u8>, from: usize, to: usize, touch: impl Fn(&UnsafeCell<()>)) {
        CELLS.with_borrow(|cells| {
            let cells = &cells[&start.addr().get()];
            let alone = from.min(WATCHED)..to.min(WATCHED);
            let (from, to) = (from.max(WATCHED), to.max(WATCHED));
            let sectors = match from < to {
                true => WATCHED + from / SECTOR..WATCHED + to.div_ceil(SECTOR),
                false => WATCHED..WATCHED,
            };
            alone.chain(sectors).for_each(|at| touch(&cells[at]));
        });
    }

    pub(crate) fn took(_bytes: i64) {}

    pub(crate) fn taken() -> u64 {
        0
    }

    pub(crate) fn made(start: NonNull<u8>, _len: usize) {
        let cells = (0..CELLS_EACH).map(|_| UnsafeCell::new(())).collect();
        let before = CELLS.with_borrow_mut(|all| all.insert(start.addr().get(), cells));
        assert!(before.is_none(), "given out twice");
    }

    pub(crate) fn read(start: NonNull<u8>, from: usize, to: usize) {
        each(start, from, to, |cell| cell.with(|_| ()));
    }

    pub(crate) fn written(start: NonNull<u8>, from: usize, to: usize) {
        each(start, from, to, |cell| cell.with_mut(|_| ()));
    }

    /// # Safety
    /// None is needed here.
    pub(crate) unsafe fn ended(start: NonNull<u8>, _len: usize) {
        each(start, 0, 8 * SECTOR, |cell| cell.with_mut(|_| ()));
        CELLS.with_borrow_mut(|all| all.remove(&start.addr().get()));
    }

    /// Frames that exist.
    pub(crate) fn left() -> usize {
        CELLS.with_borrow(HashMap::len)
    }
}

/// Owners of blocks beside the first one, counted by loom.
pub(crate) mod owners {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering, fence};
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::ptr::NonNull;

    pub(crate) const SHARED_MIN: usize = 1024;

    std::thread_local! {
        static COUNTS: RefCell<HashMap<usize, Arc<AtomicUsize>>> = RefCell::default();
    }

    fn count(start: NonNull<u8>) -> Option<Arc<AtomicUsize>> {
        COUNTS.with_borrow(|counts| counts.get(&start.addr().get()).cloned())
    }

    pub(crate) fn join(start: NonNull<u8>) {
        let others = count(start).unwrap_or_else(|| {
            let others = Arc::new(AtomicUsize::new(0));
            let place = start.addr().get();
            COUNTS.with_borrow_mut(|counts| counts.insert(place, Arc::clone(&others)));
            others
        });
        others.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(start: NonNull<u8>) -> bool {
        let Some(others) = count(start) else {
            return true;
        };
        if others.load(Ordering::Acquire) != 0 {
            if others.fetch_sub(1, Ordering::Release) != 0 {
                return false;
            }
            fence(Ordering::Acquire);
        }
        // The next block with this address is another one.
        COUNTS.with_borrow_mut(|counts| counts.remove(&start.addr().get()));
        true
    }
}
