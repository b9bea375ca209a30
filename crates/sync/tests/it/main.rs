//! The structures of this crate by their public operations.

mod index;
mod refused;
