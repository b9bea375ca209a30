//! The superblock: the properties of a volume, and the roots of all its structures.
//!
//! A checkpoint writes it to two slots, blocks 0 and 1, one after the other, so that one of them is
//! always whole. The newest whole one counts. The other one protects against a bad block.
//!
//! *Invariants.* Generations grow with each checkpoint (in this version by one), and are never
//! reset. A program refuses a volume with unknown features: to open it (`incompatible`), to write
//! to it (`read_only_compatible`), or not at all (`compatible`).

mod fields;
mod layout;

pub use fields::{Features, LABEL_MAX, Label, Roots, Superblock, VERSION};
pub use layout::{SLOT_BLOCKS, SLOTS, SlotError};
