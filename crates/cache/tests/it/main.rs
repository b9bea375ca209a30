//! The page cache by its public operations.

mod model;
mod unlocked_reads;
