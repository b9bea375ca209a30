//! The structures of this crate by their public operations.

mod catalog;
mod index;
mod refused;
