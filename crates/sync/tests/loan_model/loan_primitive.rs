//! What a loan is made of here: loom's locks.

pub(crate) use crate::primitive::{Condvar, Mutex};
pub(crate) use loom::sync::Arc;

/// One look, and one way to sleep.
pub(crate) const LOOKS: usize = 1;

/// At once: to yield would be to let the other one finish, as loom goes.
pub(crate) fn look_again() {}
