//! Holdfast's page cache: the bytes of files, all of them accounted.
//!
//! [`Pages`] is the content of one regular file: pages of 4 KiB that are read without locks, holes
//! that cost nothing, and allocated space that is not written yet. Its owner passes an [`Account`]:
//! a [`Space`] that reserves room (and may refuse with `ENOSPC`), and [`CacheStats`] that count the
//! memory. A page's bytes are in a [`frame`], and [`SpacePool`] is a `Space` with a fixed limit.
//! The budget of a process is its [`Memory`], and [`reclaim`] frees what exceeds it.
//!
//! *Invariants.* After every operation, whether it succeeded, stopped half way or failed, the space
//! of an account is charged exactly [`Pages::pages`]. Its statistics count exactly
//! [`PagesLock::frames`] and [`PagesLock::bytes`].
//!
//! *Locking.* A file's one writer has its [`PagesLock`], a leaf within this crate; readers have
//! none. Accounts may be shared between threads.

#[macro_use]
extern crate holdfast_types as _;

mod account;
pub mod frame;
#[cfg(test)]
mod frame_aging_tests;
mod frame_primitive;
#[cfg(test)]
mod frame_tests;
pub mod memory;
mod page_set;
mod pages;
mod pool;
mod primitive;
pub mod reclaim;
mod sizes;

pub use account::{Account, CacheStats, HeldBytes, Reservation, Space};
pub use frame::{Arrival, Set};
pub use memory::Memory;
pub use pages::{Contended, Flight, Missing, Pages, PagesLock, Piece, Pieces, Unused};
pub use pool::SpacePool;
pub use sizes::{MAX_SIZE, PAGE_SIZE};
// Models put epochs of their own here.
use holdfast_sync::epoch;
