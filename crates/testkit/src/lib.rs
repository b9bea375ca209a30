//! What Holdfast is tested with: a differential tester against the host kernel, an fsx of its
//! own, stores and devices that fail or wait or remember, a conformance suite for every front end, and a stress test.

pub mod conformance;
pub mod device;
pub mod diff;
pub mod fsx;
pub mod rng;
pub mod store;
pub mod stress;
