//! Holdfast's page cache: the bytes of files, every one accounted.
//!
//! [`Pages`] is the content of one regular file: pages of 4 KiB, read without locks, holes that
//! cost nothing, and space that is allocated but not yet written. Whoever owns it brings an
//! [`Account`]: a [`Space`] that promises room (and may refuse with `ENOSPC`), and [`CacheStats`]
//! that count what is held in memory. A page's bytes are in a [`frame`]. [`SpacePool`] is a `Space` with a fixed limit. [`Memory`] is how much a process
//! may hold of everything, and [`reclaim`] how it is kept to that.
//!
//! *Invariants.* The space of an account is charged exactly [`Pages::pages`], and its statistics
//! exactly [`PagesLock::frames`] and [`PagesLock::bytes`], after every operation, whether it
//! succeeded, stopped half way or failed.
//!
//! *Locking.* A file's one writer has its [`PagesLock`], a leaf in here; readers have none. The
//! accounts are safe to share.

mod account;
pub mod frame;
#[cfg(test)]
mod frame_heat_tests;
mod frame_primitive;
#[cfg(test)]
mod frame_tests;
mod group;
pub mod memory;
mod page_set;
mod pages;
mod pool;
mod primitive;
mod ranges;
pub mod reclaim;

pub use account::{Account, CacheStats, HeldBytes, Reservation, Space};
pub use frame::{Arrival, Set};
pub use memory::Memory;
pub use pages::{
    Contended, Flight, MAX_SIZE, Missing, PAGE_SIZE, Pages, PagesLock, Piece, Pieces, Unused,
};
pub use pool::SpacePool;
// Models put epochs of their own in this place.
use holdfast_sync::epoch;
