//! Freeing what can be brought back: one way for all that can.
//!
//! Whatever holds objects that can go registers a [`Shrinker`] for them with the process's memory
//! ([`Memory::shrinkers`](crate::Memory::shrinkers)). A shrinker says how much there is and how much there is to be, counts its objects, and looks at as many as it is
//! told to; how many that is follows from what is too much (`arithmetic.rs`), and what one pass could not do the next one does. The protocol and
//! the arithmetic are those of Linux (J. Bacik's and D. Chinner's exchange of October 2016 has records of it), and so is the form in which it can be
//! watched ([`Trace`]).
//!
//! *Invariants.* A shrinker frees no more than is too much, but for the rest of a batch. What is owed stays below twice the objects. [Within a
//! store](within_store) nothing is freed that needs it, and all of it is owed.
//!
//! *Locking.* A reclaim begins with nothing locked. Each shrinker has its turn; its own locks lie below.

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
