//! Reclaim of memory over a store that can load the data again.
//!
//! CLOCK hands scan the inodes by number: some free the pages of files, some evict unused inodes,
//! with their names. An object enters on *probation*. If it was not referenced again when a hand
//! passes, it is evicted; otherwise it moves to the *main* set. The main set is scanned only when
//! probation gets small (as in S3-FIFO: Yang et al., SOSP 2023). So a walk over everything passes
//! through, and does not evict what is used. An object that is loaded again soon after its eviction
//! enters the main set. Between two passes of a hand only the first use writes: see
//! `inode/aging.rs`.
//!
//! The [registry](holdfast_cache::reclaim) of the process's memory decides how much is scanned; its
//! shrinkers are here: [`metadata`], [`content`] and [`kernel`].
//!
//! An operation that adds objects checks the limit only after a number of bytes or names were added
//! on its own CPU. So it reads no cache line that other CPUs write.
//!
//! *Locking.* A hand's lock comes after its shrinker's lock, which is taken with no lock held, and
//! before all others.

pub(crate) mod balance;
pub(crate) mod content;
pub(crate) mod ghosts;
pub(crate) mod kernel;
pub(crate) mod metadata;
pub(crate) mod shrinkers;
pub(crate) mod sizes;
mod state;
pub(crate) mod usage;

pub(crate) use ghosts::page_key;
pub(crate) use state::Reclaim;
