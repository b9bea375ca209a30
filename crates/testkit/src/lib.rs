//! What Holdfast is tested with: a differential tester against the host kernel, an fsx of its
//! own, stores and devices that fail or wait or remember, a conformance suite for every front end, a stress
//! test, and a crash test of volumes.

pub mod alone;
pub mod coherence;
pub mod conformance;
pub mod crash;
pub mod device;
pub mod diff;
pub mod effort;
pub mod faults;
pub mod fsx;
pub mod full;
pub mod memory;
pub mod mount;
pub mod rng;
pub mod scratch;
pub mod skip;
pub mod store;
pub mod stress;

pub use effort::{effort, seed};
