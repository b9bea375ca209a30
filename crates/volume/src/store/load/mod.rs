//! Reading: the memtables first, then the trees.
//!
//! Owns the device with the writes in flight to it.

mod content;
mod device;
mod in_flight;
mod inodes;
mod metered;
mod names;
mod read_range;
mod records;
mod rest;
mod seen;
mod store_reader;
mod walk;

pub(super) use device::Blocks;
pub(super) use in_flight::{InFlight, Ticket};
pub(super) use inodes::SnapshotReader;
pub use metered::DeviceUse;
pub(super) use metered::Metered;
pub(super) use records::DataRecords;
pub(super) use store_reader::StoreReader;
