//! The locks and atomics under the store's gate.
//!
//! `tests/gate_model` compiles that module a second time, with another module of this name that holds loom's: the same
//! source runs under every interleaving.

pub(crate) use holdfast_sync::PerCore;
pub(crate) use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
