//! Loom's atomics and locks under the names that the index uses.

pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::ops::{Deref, DerefMut};

/// Two slots a node: enough for neighbours, and for a node above.
pub(crate) const NODE_BITS: u32 = 1;

/// The first change counts.
pub(crate) const SHARED_AFTER: usize = 1;

/// The next one drives it out.
pub(crate) const SUSPECTS: usize = 1;

/// It would be tried at every moment.
pub(crate) const LOOKS_AHEAD: bool = false;

/// One element is enough where many would only keep threads apart.
macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: [$type:ty; $length:expr] = $each:expr;) => {
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: [$type; 1] = [$each];
        }
    };
}
pub(crate) use process_wide;

/// A lock with the interface of the real one.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("not poisoned")))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("locked")
    }
}

/// A condition with the interface of the real one.
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let locked = guard.0.take().expect("locked");
        guard.0 = Some(self.0.wait(locked).expect("not poisoned"));
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
