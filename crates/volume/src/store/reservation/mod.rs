//! Reservations: space that a change may need, taken before the change.
//!
//! *Invariants.* Let `wanted` be the worst-case cost of a checkpoint of all memtables, plus
//! per-core allowances, plus charges of operations in progress. Then `wanted` is at most the free
//! blocks plus those set aside. After that checkpoint the *reserve* is whole: blocks set aside on
//! which only operations that free space draw. The journal has room for all that was charged of it.
//! Blocks for pages are taken from the free ones at once.
//!
//! A growing operation fails if this would not hold, and neither a commit nor a checkpoint helps.
//! An operation that changes existing objects may use half of the reserve, one that frees space all
//! of it. One that overwrites allocated data is not refused because of others' charges: each
//! charges its worst case, and uses a part of it.
//!
//! On a host with less free space than an image promises, see [`host`].
//!
//! *Locking.* No lock is held while space is made. The [page reservations](PageReservations) are a
//! leaf.

mod budget;
mod cost;
mod host;
mod page_reservations;
mod pool;
#[cfg(test)]
pub(super) mod tests;

pub(super) use budget::{Budget, changes_of};
pub(super) use cost::Cost;
use page_reservations::PageReservations;
pub(super) use pool::{Pool, reserve_wanted};
