//! What the figures are held against.

/// What a flood of creations shall keep of its speed within a budget.
pub(crate) const FLOOD_KEPT: f64 = 0.95;

/// How many times as long 99 of 100 creations may take within a budget.
pub(crate) const FLOOD_P99: f64 = 2.0;

/// The part of a working set's uses that shall be found in memory beside a walk.
pub(crate) const HITS: f64 = 0.99;

/// What a walk shall keep of its speed beside uses of a working set.
pub(crate) const WALK_KEPT: f64 = 0.9;
