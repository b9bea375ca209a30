//! What the ticker's word is made of here: loom's atomics.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) const PATIENCE: u32 = 1;

/// Declares a function, which here is not `const`: loom's atomics are not made so.
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility fn $($function)*
    };
}
pub(crate) use constant;
