//! The lock under [`turns`](crate::turns).
//!
//! `tests/turns_model` compiles that module a second time, with another module of this name that
//! holds loom's: the same source runs under every interleaving.

pub(crate) use parking_lot::{Mutex, MutexGuard};
