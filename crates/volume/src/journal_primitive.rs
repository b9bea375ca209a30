//! The locks and atomics under [`journal`](crate::journal).
//!
//! `tests/journal_model` compiles that module a second time, with another module of this name that
//! holds loom's: the same source runs under every interleaving.

pub(crate) use holdfast_sync::PerCore;
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
