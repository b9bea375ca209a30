//! Holdfast's concurrency floor: what many threads touch at once, without sharing cache lines.
//!
//! [`epoch`] keeps memory from being freed under its readers, [`Published`] is a pointer they follow.
//! On these stand two structures that are read without a lock: [`Index`] finds counted objects
//! by number ([`Remembered`] counts those that are away), [`frame`] holds the bytes of files in pages.
//! A [`Forerunner`] touches memory before it is needed, a [`Ticker`] keeps the time at hand for those who ask all the time.
//! [`divide`] gives parts of a work to a thread that is at hand, and to others. Threads are started by
//! way of [`without_idle_policy`].
//! [`CoreLocks`] are locks that their threads take without an exchange, a [`Latch`] takes one, and so does a
//! [`Bolt`], which is a byte.
//! [`PerCore`] and [`ShardedCounter`] keep state that is written per thread and summed only when
//! somebody asks, [`Padded`] keeps neighbours apart; [`collections`] tells what maps take in memory. Nothing here knows a word of file systems.
//!
//! *Invariants.* Readers write no line but their thread's own. Two changes of different objects,
//! or two additions by threads with slots of their own, write no line in common.
//!
//! *Locking.* Each structure says what its writers lock. Nobody waits for anything under a guard of
//! [`epoch`], except for locks that are held for a few stores.

mod barrier;
mod bolt;
mod bolt_primitive;
#[cfg(test)]
mod bolt_tests;
pub mod collections;
pub mod core_locks;
mod core_locks_primitive;
#[cfg(test)]
mod core_locks_tests;
mod counter;
mod crew;
pub mod epoch;
mod epoch_primitive;
mod estimate;
mod forerunner;
pub mod frame;
#[cfg(test)]
mod frame_heat_tests;
mod frame_primitive;
#[cfg(test)]
mod frame_tests;
mod hand;
mod idle_policy;
mod index;
mod latch;
mod loan;
mod loan_primitive;
#[cfg(test)]
mod loan_tests;
mod padded;
mod per_core;
mod prefetch;
mod primitive;
mod published;
mod service;
mod thread_slot;
mod ticker;
mod ticker_primitive;

pub use bolt::{Bolt, BoltGuard};
pub use core_locks::CoreLocks;
pub use counter::ShardedCounter;
pub use crew::{divide, processors};
pub use estimate::Estimate;
pub use forerunner::Forerunner;
pub use idle_policy::without_idle_policy;
pub use index::{Doomed, Held, Index, Prepared, Ref, Remains, Remembered, RememberedLocked, Runs};
pub use latch::{Latch, LatchGuard};
pub use padded::Padded;
pub use per_core::PerCore;
pub use prefetch::{prefetch, prefetch_to_fill};
pub use published::Published;
pub use ticker::{Keeper, Ticker};
