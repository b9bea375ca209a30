//! The core's invariants, and known mistakes of other file systems, each as a test.
//!
//! The ids in the comments are those of the table in `docs/invariants.md`, which also says where
//! the other ids are tested.

mod evict;
mod loads;
mod names;
mod reads;
mod revoke;
mod scan;
mod stage;
mod walk;
