//! Loom's atomics and locks under the names that the crate uses.

#[path = "../../../sync/tests/facade/mod.rs"]
#[expect(dead_code, reason = "a model uses a part of it")]
mod facade;

pub(crate) use facade::{Condvar, Mutex};
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
