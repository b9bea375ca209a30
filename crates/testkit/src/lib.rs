//! What Holdfast is tested with: a differential tester against the host kernel, an fsx of its
//! own, stores that fail or wait or remember, and a conformance suite for every front end.

pub mod conformance;
pub mod diff;
pub mod fsx;
pub mod rng;
pub mod store;
