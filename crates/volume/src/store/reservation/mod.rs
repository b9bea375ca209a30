//! Room for what is about to be changed: asked for before, kept until it is changed.
//!
//! *Invariants.* With what all overlays hold, what the cores have credit for and what operations under way have
//! claimed, the next checkpoint takes no more blocks than are free or set aside; and when it is done, the *reserve*
//! is whole: blocks set aside that only operations that give back draw on. The journal has room for what was claimed
//! of it. Blocks promised for pages are taken from the free ones at once.
//!
//! A growing operation is refused where this would not hold, when neither a commit nor a checkpoint helps. One that
//! changes what is there may draw on half of the reserve, one that gives back on all of it. One that changes bytes which
//! have space is not refused because of what others have claimed: each claims the worst case, and takes a part of it.
//!
//! Of an image on a host with less room than the image promises no more is free than the host has room for: see [`host`].
//!
//! *Locking.* Nothing is held over a remedy. The [promises](Promises) of a core are a leaf.

pub(in crate::store) mod budget;
mod cost;
mod host;
#[cfg(test)]
pub(in crate::store) mod ledger;
mod nodes;
mod pool;
mod promised;
mod reserve;
#[cfg(test)]
mod tests;

pub(super) use pool::{Pool, reserve_wanted};
pub(super) use promised::Promises;
