//! What [`late`](crate::late) is made of.
//!
//! `tests/late_model` compiles that module a second time, with another module of this name that holds loom's.

pub(crate) use parking_lot::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
