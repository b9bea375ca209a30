//! Mounts made for measuring: the null file system, our own in memory, a slow host, and the calls
//! that make requests of them.

pub(crate) mod calls;
pub(crate) mod mounted;
pub(crate) mod null;
pub(crate) mod serve;
pub(crate) mod slow;
