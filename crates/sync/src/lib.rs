//! Holdfast's concurrency floor: structures that many threads use at once without sharing cache
//! lines.
//!
//! The module [`epoch`] keeps memory from being freed under its readers, and [`Published`] is a
//! pointer that they follow. An [`Index`] finds reference-counted objects by number without a lock,
//! and [`EvictedUses`] keeps the counts of evicted objects. A call of [`together`] runs work on
//! several threads, and [`without_idle_policy`] spawns threads. The types [`PerCore`] and
//! [`ShardedCounter`] hold state that is written per thread and summed on demand. A [`Padded`]
//! value has cache lines of its own, and [`collections`] gives the memory that maps take. Nothing
//! here knows about file systems.
//!
//! *Invariants.* A reader writes only its own thread's cache line. Changes of different objects,
//! and additions by threads with slots of their own, write no line in common.
//!
//! *Locking.* Each structure says what its writers lock. Under a guard of [`epoch`] a thread takes
//! only locks that are held for a few stores, and waits for nothing else.

mod barrier;
pub mod collections;
mod constant;
mod counter;
pub mod epoch;
mod estimate;
mod idle_policy;
mod index;
mod padded;
mod parallel;
mod per_core;
mod prefetch;
mod primitive;
mod published;
mod thread_slot;

pub use counter::ShardedCounter;
pub use estimate::Estimate;
pub use idle_policy::without_idle_policy;
pub use index::{
    EvictedUses, EvictedUsesLocked, Freeing, Held, Index, Prepared, Ref, Remains, Runs,
};
pub use padded::Padded;
pub use parallel::{processors, together};
pub use per_core::PerCore;
pub use prefetch::prefetch;
pub use published::Published;
