//! Loom's lock under the names that the turns use.

use loom::sync::{Mutex, MutexGuard};

pub(crate) type BoltGuard<'b> = MutexGuard<'b, ()>;

/// A lock that knows no poison, like the real one.
pub(crate) struct Bolt(Mutex<()>);

impl Bolt {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(()))
    }

    pub(crate) fn lock(&self) -> BoltGuard<'_> {
        self.0.lock().expect("a panic ends the model")
    }
}
