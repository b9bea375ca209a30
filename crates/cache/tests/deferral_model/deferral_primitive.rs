//! Loom's parts under the names that deferred work uses.

pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
