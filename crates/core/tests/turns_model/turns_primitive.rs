//! Loom's lock under the names that the turns use.

pub(crate) use loom::sync::MutexGuard;

/// A lock that knows no poison, like the real one.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }
}
