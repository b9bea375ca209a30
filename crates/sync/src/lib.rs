//! Holdfast's concurrency floor: what many threads touch at once, without sharing cache lines.
//!
//! [`ShardedMap`] finds a value by number, [`PerCore`] and [`ShardedCounter`] keep state that is
//! written per thread and summed only when somebody asks, [`Padded`] keeps neighbours apart.
//! [`epoch`] keeps memory from being freed under its readers, [`Published`] is a pointer they follow.
//! [`Index`] finds counted objects by number.
//! Nothing here knows a word of file systems.
//!
//! *Invariants.* Two operations on different keys, or two additions by threads with slots of
//! their own, write no line in common, except where two keys happen to fall into one shard.
//!
//! *Locking.* The shard locks of [`ShardedMap`] are leaves: nothing else is locked while one is
//! held, except by closures that the caller passes in, and those must not call back into the map.

pub mod catalog;
mod catalog_primitive;
mod counter;
pub mod epoch;
pub mod frame;
mod frame_primitive;
#[cfg(test)]
mod frame_tests;
mod index;
mod padded;
mod per_core;
mod primitive;
mod published;
mod sharded_map;
mod thread_slot;

pub use catalog::{Catalog, CatalogWriter};
pub use counter::ShardedCounter;
pub use index::{Doomed, Held, Index, Ref};
pub use padded::Padded;
pub use per_core::PerCore;
pub use published::Published;
pub use sharded_map::{Cursor, ShardedMap};
