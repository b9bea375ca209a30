//! Workloads: what is done to a tree, in which phases, by how many threads.

pub(crate) mod baselines;
pub(crate) mod cached_read;
pub(crate) mod fuse;
pub(crate) mod sharded;
pub(crate) mod sparse;
