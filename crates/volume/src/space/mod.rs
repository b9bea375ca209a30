//! Free space: groups, bitmaps, preallocations.
//!
//! The volume's blocks lie in groups of up to 126 MiB. Each has two slots for its bitmap, written
//! in turn by the checkpoints that changed it, so recording an allocation allocates nothing. The
//! bitmaps of a flex group lie together, so a file can lie in a row across groups. In memory each
//! group has its bitmap with a summary, under a lock of its own.
//!
//! A block is *used* from the moment it is [placed](Space::allocate) until no reader can need its
//! content. It is *recorded* while the trees and the journal refer to it. Checkpoints write the
//! recorded blocks at their cut. Used and not recorded are preallocations, data placed and not
//! recorded yet, and freed blocks that may not be reused yet:
//!
//! - data that a record freed, until the record is [durable](Space::committed);
//! - a node that a checkpoint replaced, until a superblock [without it](Space::checkpointed) is the
//!   oldest that recovery may use.
//!
//! Reserved blocks ([`Reservation`]) are counted in a ledger; the holder of a reservation always
//! gets its blocks.
//!
//! The bitmaps of a large volume are read when a group is first needed. Until then the seal says
//! how much is free, which suffices for reservations. No block is allocated from bitmaps that do
//! not match the seal.
//!
//! *Invariants.* Used = recorded + preallocated + placed and not recorded + deferred, no block
//! twice. Reserved blocks <= free blocks. `docs/format.md` has the bytes.
//!
//! *Locking.* Order of the changes (`order`), then a group, then an index of preallocations. The
//! lists of changes and the ledger are leaves. One group at a time.

mod allocate;
mod bits;
mod checkpoint;
mod counter;
mod error;
mod extent;
mod group;
mod grow;
mod layout;
mod load;
mod map;
mod preallocation;
mod recorded;
mod records;
mod report;
mod reservation;
mod search;
mod slot;
#[expect(clippy::module_inception, reason = "the space itself")]
mod space;
mod table;
#[cfg(test)]
mod tests;
mod trim;

pub use allocate::Request;
pub use checkpoint::Bitmaps;
pub use counter::Kind;
pub use error::{Error, Remedy, SlotError};
pub use extent::Extent;
pub use layout::{BUNDLE_MAX, GROUP_BLOCKS_MAX, GROUP_BLOCKS_MIN, GROUPS_MAX, Layout, SLOT_BLOCKS};
pub use load::Loader;
pub use preallocation::{FILE_BLOCKS_MAX, FileRequest, Mapped, Preallocations, Window};
pub use recorded::{Recorded, recorded};
pub use report::Report;
pub use reservation::Reservation;
pub(crate) use slot::encode as slot_image;
pub use slot::{Block, Seal};
pub use space::Space;
