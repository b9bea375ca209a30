//! How a file system, or what it has in memory, goes: caches that are dropped, forced and ordinary unmounts.

mod drop_caches;
mod revoke;
mod shutdown;

pub use shutdown::Shutdown;
