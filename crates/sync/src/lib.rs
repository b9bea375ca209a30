//! Holdfast's concurrency floor: what many threads touch at once, without sharing cache lines.
//!
//! [`epoch`] keeps memory from being freed under its readers, [`Published`] is a pointer they follow.
//! On these stands a structure that is read without a lock: [`Index`] finds counted objects
//! by number ([`EvictedUses`] counts those that are away).
//! [`together`] does work on several threads. Threads are started by
//! way of [`without_idle_policy`].
//! [`PerCore`] and [`ShardedCounter`] keep state that is written per thread and summed only when
//! somebody asks, [`Padded`] keeps neighbours apart; [`collections`] tells what maps take in memory. Nothing here knows a word of file systems.
//!
//! *Invariants.* Readers write no line but their thread's own. Two changes of different objects,
//! or two additions by threads with slots of their own, write no line in common.
//!
//! *Locking.* Each structure says what its writers lock. Nobody waits for anything under a guard of
//! [`epoch`], except for locks that are held for a few stores.

mod barrier;
pub mod collections;
mod constant;
mod counter;
mod crew;
pub mod epoch;
mod estimate;
mod idle_policy;
mod index;
mod padded;
mod per_core;
mod prefetch;
mod primitive;
mod published;
mod thread_slot;

pub use counter::ShardedCounter;
pub use crew::{processors, together};
pub use estimate::Estimate;
pub use idle_policy::without_idle_policy;
pub use index::{
    EvictedUses, EvictedUsesLocked, Freeing, Held, Index, Prepared, Ref, Remains, Runs,
};
pub use padded::Padded;
pub use per_core::PerCore;
pub use prefetch::{prefetch, prefetch_to_fill};
pub use published::Published;
