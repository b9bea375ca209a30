//! Loom's parts under the names that access times in wait use.

use loom::sync::MutexGuard;
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};

/// A lock that knows no poison, like the real one.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }
}
