//! The start and the end of a file system: sync, dropped caches, forced and ordinary unmounts.

mod drop_caches;
mod revoke;
mod shutdown;
mod start;
mod sync;

pub use shutdown::Shutdown;
