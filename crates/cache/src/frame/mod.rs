//! Memory in frames, found by number: one writer at a time, readers without locks.
//!
//! [`Frames`] is a sparse array of frames of [`FRAME_SIZE`] bytes. A reader takes a [`Snapshot`]
//! under a guard of the epochs, looks frames up, and asks at the end whether the snapshot still
//! holds; it writes no shared memory. A writer takes the lock, and what it does becomes visible
//! with single stores of pointers.
//!
//! *Invariants.*
//! - Bytes of a frame that a reader can know of never change. A slot holds the frame's address
//!   *and* which of its bytes are filled, in one word; a writer may fill more and store
//!   the word that says so, but for any other change it makes another frame. So no byte is
//!   ever read and written at the same time: there is nothing to be torn and nothing to be undefined.
//! - Bytes that are not filled count as zeros; the memory there is uninitialised. A frame with gaps between
//!   those that are filled is *broken*: readers without the lock do not look into it, and whoever looks under
//!   the lock mends it first.
//! - A frame or node is in one slot; taken out, it is retired through the epochs. Of a frame somebody
//!   else may be an owner too ([`Shared`]): its memory goes with the last of them.
//! - Every inner node has two children at least.
//! - The version is even while every state that readers can see is one that a writer meant to show.
//!   It is odd while a writer makes a change that takes more than one store to show, until the lock
//!   is given up; and it changes with every change.
//!
//! *Locking.* The lock is a leaf as far as this module goes: nothing else is locked under it here.

mod aging;
mod block;
mod fill;
mod fresh;
mod gate;
mod inside;
mod lock;
mod map;
mod node;
mod query;
mod recycle;
mod shape;
mod shared;
mod side;
mod slot;
mod way;
mod word;

pub use aging::{Arrival, Set};
pub use fresh::Frame;
pub use lock::FramesLock;
pub use map::{Frames, Snapshot, Totals};
pub use shared::Shared;
pub use slot::Stored;

/// Bytes of all frames of this process that the allocator has not back: those in maps, those that others
/// [share](Shared), those that were retired, and those kept to be used again. Changes under way are counted or not.
#[must_use]
pub fn allocated() -> u64 {
    crate::frame_primitive::memory::taken()
}

/// Bytes of a frame, at most: there may be room for fewer, as long as the rest is zeros.
pub const FRAME_SIZE: usize = 4096;

/// One more than the largest number that a frame can have.
pub const FRAME_END: u64 = 1 << 52;
