//! What is asked for: looked for in the memtables, then in the trees.
//!
//! Owns the device as trees and files see it, with what is on its way there on top.

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
