//! Objects by number, found without a lock and counted in a word of their own.
//!
//! An [`Index`] maps keys to objects ([`Held`]) by a 64-way tree. A lookup writes nothing; a use
//! ([`Ref`]) is one compare-exchange in the object. An object is built before it becomes visible.
//! It leaves in two steps: one thread makes it *freeing* and owns its end ([`Freeing`]), while
//! lookups wait. Then it is taken out of the tree, and freed after a grace period.
//!
//! *Invariants.*
//! - An object with a reference is not freeing, and a freeing one gets no reference. There is at
//!   most one [`Freeing`] for an object, so it is taken out once.
//! - An object is freed once: after it was taken out and a grace period. If its index is dropped
//!   first, its last [`Ref`] or its [`Freeing`] frees it at once.
//! - The length is the number of objects in the tree, as a sum of per-core counters.
//! - Operations on different keys write no line in common, if the keys are in different aligned
//!   groups of eight and their leaves exist. Nor do uses of one object, once several threads use it
//!   in turn: it then has [`shares`].
//! - A raw use is counted by the object while that is in the tree, and else in [`EvictedUses`]
//!   under its key.
//!
//! *Locking.* Waiting for a freeing object takes a lock of a small table ([`wait`]). Changing how
//! an object's uses are counted takes one of the object ([`shares`]), and emptying a leaf one of
//! the core ([`suspects`]). All are leaves; nothing else takes a lock. A thread with a [`Guard`]
//! must not wait for an object, since the guard would keep all garbage alive.
//!
//! [`Guard`]: crate::epoch::Guard

mod drain;
mod ending;
mod evicted_uses;
mod freeing;
mod held;
mod map;
mod node;
mod prepared;
mod radix;
mod reference;
mod runs;
mod scan;
mod shares;
mod suspects;
mod wait;
mod walk;
mod word;

pub use drain::Remains;
pub use evicted_uses::{EvictedUses, EvictedUsesLocked};
pub use freeing::Freeing;
pub use held::Held;
pub use map::Index;
pub use prepared::Prepared;
pub use reference::Ref;
pub use runs::Runs;
