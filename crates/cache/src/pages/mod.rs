//! The cached content of one regular file, read without locks.
//!
//! *Invariants.* Bytes that a reader can see never change: a frame is immutable up to its filled
//! bytes (see [`frame`](crate::frame)), and overwritten content goes to a new frame. No page is
//! both framed and unwritten or absent. Every read sees the bytes *and the size* of one moment, if
//! the owner keeps this rule: **the size changes after the pages, under the same [`PagesLock`]**.
//!
//! *Locking.* Writers take [`Pages::lock`]; readers none, unless they are [`Contended`].

mod aging;
mod change;
mod content;
mod copy;
mod fallocate;
mod flight;
mod missing;
mod pieces;
mod read;
mod seek;
mod unloaded;
mod unwritten;
mod write;

pub use aging::Unused;
pub use content::{Pages, PagesLock};
pub use flight::Flight;
pub use missing::Missing;
pub use pieces::{Piece, Pieces};
pub use read::Contended;
