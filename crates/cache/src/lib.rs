//! Holdfast's page cache: the bytes of files, every one accounted.
//!
//! [`Pages`] is the content of one regular file: frames of 4 KiB in chunks of 64, holes that
//! cost nothing, and space that is allocated but not yet written. Whoever owns it brings an
//! [`Account`]: a [`Space`] that promises room (and may refuse with `ENOSPC`), and [`CacheStats`]
//! that count what is held in memory. [`SpacePool`] is a `Space` with a fixed limit.
//!
//! *Invariants.* The space of an account is charged exactly [`Pages::pages`], and its statistics
//! exactly [`Pages::frames`] and [`Pages::bytes`], after every operation, whether it succeeded,
//! stopped half way or failed.
//!
//! *Locking.* None in here. A `Pages` is used under its file's own lock: `&self` under the read
//! lock, `&mut self` under the write lock. The accounts are safe to share.

mod account;
mod chunk;
mod frame;
mod pages;
mod pieces;
mod pool;
pub mod published;
mod ranges;
mod root;

pub use account::{Account, CacheStats, Reservation, Space};
pub use frame::PAGE_SIZE;
pub use pages::{MAX_SIZE, Pages};
pub use pieces::{Piece, Pieces};
pub use pool::SpacePool;
