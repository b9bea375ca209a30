//! The end of a file system or of its caches: dropped caches, forced and ordinary unmounts.

mod drop_caches;
mod revoke;
mod shutdown;

pub use shutdown::Shutdown;
