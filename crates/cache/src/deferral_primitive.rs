//! What [`deferral`](crate::reclaim) is made of.
//!
//! `tests/deferral_model` compiles that module a second time, with another module of this name that holds loom's.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
