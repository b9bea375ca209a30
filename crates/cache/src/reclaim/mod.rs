//! Reclaim: one way to free everything that can be brought back.
//!
//! An owner of such objects registers a [`Shrinker`] for them with the process's memory
//! ([`Memory::shrinkers`](crate::Memory::shrinkers)). A shrinker reports its load and its marks,
//! counts its objects, and scans as many as requested. That number follows from the excess
//! (`arithmetic.rs`), and what one pass could not do is deferred to the next. The protocol and the
//! arithmetic are those of Linux (the exchange of J. Bacik and D. Chinner of October 2016 has
//! records of it). So is the form of its trace ([`Trace`]).
//!
//! *Invariants.* A shrinker frees no more than the excess, except for the rest of a batch. Deferred
//! work stays below twice the objects. [Within a store](within_store) nothing is freed that needs
//! it, and all of that work is deferred.
//!
//! *Locking.* A reclaim begins with no lock held. Each shrinker has a lock for its reclaims; locks
//! that it takes lie below.

mod arithmetic;
mod backoff;
mod context;
mod deferral;
mod pass;
mod registry;
mod shrinker;
mod trace;

pub use arithmetic::Pressure;
pub use context::{Context, WithinStore, within_store};
pub use pass::{Registered, Shrunk, Totals};
pub use registry::Registry;
pub use shrinker::{Count, Load, Request, Scan, Shrinker};
pub use trace::{Record, Records, Step, Trace};

#[cfg(test)]
mod tests;
