//! Memory in frames, found by number: one writer at a time, readers without locks.
//!
//! [`Frames`] is a sparse array of frames of [`FRAME_SIZE`] bytes. A reader takes a [`Snapshot`]
//! under a guard of the epochs, looks frames up, and asks at the end whether the snapshot still
//! holds. It writes no shared memory. A writer takes the lock, and its changes become visible by
//! single stores of pointers.
//!
//! *Invariants.*
//! - Bytes that a reader can know of never change. A slot holds the frame's address *and* which
//!   bytes are filled, in one word. A writer may fill more bytes and store the word that says so;
//!   for any other change it makes another frame. So no byte is read and written at the same time.
//! - Bytes that are not filled count as zeros; the memory there is uninitialised. A frame with gaps
//!   between the filled bytes is *broken*: a reader without the lock does not read it, and a reader
//!   under the lock fills the gaps first.
//! - A frame or node is in one slot. When it is taken out, it is retired through the epochs. A
//!   frame may have other owners ([`Shared`]); its memory is freed with the last of them.
//! - Every inner node has at least two children.
//! - While `version` is even, readers see only states that a writer completed. It is odd during a
//!   change of more than one store, until the lock is dropped. Every change changes it.
//!
//! *Locking.* The lock is a leaf within this module: nothing else is locked under it here.

mod aging;
pub(crate) mod bits;
mod block;
mod fill;
mod fresh;
mod garbage;
mod gate;
mod inside;
mod keeps;
mod lock;
mod map;
mod node;
mod query;
mod restructure;
mod shared;
mod side;
mod size;
mod stored;
mod word;

pub use aging::{Arrival, Set};
pub use fresh::Frame;
pub use lock::FramesLock;
pub use map::{Frames, Snapshot, Totals};
pub use shared::Shared;
pub use size::{FRAME_END, FRAME_SIZE};
pub use stored::Stored;

/// Bytes of all frames of this process: those in maps, those that others [share](Shared), and
/// retired ones. Changes under way may be counted or not.
#[must_use]
pub fn allocated() -> u64 {
    crate::frame_primitive::memory::taken()
}
