//! Preallocations: blocks set aside for growing files, so that each lies in few extents.
//!
//! A large file has pieces of its own, each for a stretch of it ([`Preallocations`]). Small files
//! share the pieces of their core. Both are used and not recorded, vanish with a crash, and are
//! given up before an allocation fails for lack of room.
//!
//! The mechanism is that of ext4's allocator since its preallocations moved from a list to a tree
//! (Ojaswin Mujoo, 2022). Unlike there, a used-up piece leaves the index at once, so pieces need no
//! marks of deletion.
//!
//! *Invariants.* Pieces of a file overlap neither in the file nor on the volume (P1). The free
//! blocks of a piece are those that the file has not taken from it, at least one while it is in the
//! index. The file may have other blocks for that range, so callers never ask for a block that is
//! mapped (P2). While a piece can be found, it is in one index and on the list of one group (P3).
//! The thread that removes a piece from its index also removes the list entry.
//!
//! *Locking.* A group, then an index. A core's locality is locked before groups: a sweep locks it
//! while it holds no other lock.

mod index;
mod locality;
mod pieces;
mod preallocations;
mod sweep;
#[cfg(test)]
mod tests;
mod window;

pub(super) use index::Listed;
pub(super) use locality::Locality;
pub use preallocations::Preallocations;
pub use window::{FILE_BLOCKS_MAX, FileRequest, Mapped, Window};
