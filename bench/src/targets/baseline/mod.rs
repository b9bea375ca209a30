//! `baseline:DESIGN`: `mem:` with one of the designs that the engine does without, around the same
//! calls: what they cost is the difference, and the tables that condemned them can be made again.

mod guarded;
mod listed;

pub(crate) use guarded::GuardedTree;
pub(crate) use listed::ListedTree;

use clap::ValueEnum;

/// What readers of a file write, each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guard {
    /// A reader-writer lock
    Lock,
    /// A reference, and a count of what is under way, on one line
    TwoCounters,
    /// A reference
    OneCounter,
}
