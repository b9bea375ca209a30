//! Reading: the memtables first, then the trees.
//!
//! Owns the device with the writes in flight to it.

mod content;
pub(in crate::store) mod device;
pub(in crate::store) mod in_flight;
mod inodes;
pub(in crate::store) mod metered;
mod names;
pub(in crate::store) mod read_range;
pub(in crate::store) mod records;
mod rest;
mod seen;
mod walk;

pub(in crate::store) use inodes::SnapshotReader;
