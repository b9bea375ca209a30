//! The start and the end of a file system: sync, dropped caches, forced and ordinary unmounts.

pub(crate) mod drop_caches;
pub(crate) mod revoke;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod sync;

pub use shutdown::Shutdown;
