//! What the figures are held against.

/// The seconds in which one thread shall let go of a million inodes.
pub(crate) const LET_GO: f64 = 0.1;

/// What a flood of creations shall keep of its speed within a budget.
pub(crate) const FLOOD_KEPT: f64 = 0.95;

/// How many times as long 99 of 100 creations may take within a budget.
pub(crate) const FLOOD_P99: f64 = 2.0;

/// The part of a working set's uses that shall be found in memory beside a walk.
pub(crate) const HITS: f64 = 0.99;

/// What a walk shall keep of its speed beside uses of a working set.
pub(crate) const WALK_KEPT: f64 = 0.9;

/// Names that shall be made in one directory in a second, within a budget.
pub(crate) const NAMES_MADE: f64 = 100_000.0;

/// Reads of the device that a cold lookup shall need at most.
pub(crate) const LOOKUP_READS: u64 = 3;

/// What a listing of a directory that is not in memory as a whole shall reach of one that is.
pub(crate) const LISTED: f64 = 0.8;
