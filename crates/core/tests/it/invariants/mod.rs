//! The core's invariants, and errors that others have made before, each as a test.
//!
//! The ids in the comments are those of the table in `docs/invariants.md`, which also says where ids
//! are tested that do not occur here.

mod evict;
mod loads;
mod names;
mod reads;
mod revoke;
mod scan;
mod stage;
mod walk;
