//! What the ticker's word is made of, for a model to exchange.
//!
//! `tests/ticker_model` compiles that module a second time, with another module of this name that holds
//! loom's atomics.

pub(crate) use crate::frame_primitive::constant;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rounds that a word is kept in vain before it is given up: 64 ms, sixteen ticks of most kernels.
pub(crate) const PATIENCE: u32 = 64;
