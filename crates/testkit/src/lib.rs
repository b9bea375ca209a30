//! What Holdfast is tested with: stores and devices that fail, wait or record, and the suites over
//! them.
//!
//! The suites are a differential tester against the host's kernel, an fsx, a conformance suite for
//! every front end, a stress test, and crash and fault tests of volumes.

pub mod alone;
pub mod coherence;
mod command;
pub mod conformance;
pub mod crash;
pub mod device;
pub mod diff;
pub mod dump;
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
