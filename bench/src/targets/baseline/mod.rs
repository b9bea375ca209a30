//! `baseline:DESIGN`: `mem:` with one of the designs that the engine does without, around the same
//! calls: what they cost is the difference, and the tables that condemned them can be made again.

mod guarded;
mod listed;
mod pieces;

pub(crate) use guarded::GuardedTree;
pub(crate) use listed::ListedTree;
pub(crate) use pieces::PiecesTree;

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

/// How what is set aside for a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pieces {
    /// On one list under one lock, searched from its head
    #[value(name = "pieces-list")]
    List,
    /// In the engine's index
    #[value(name = "pieces-index")]
    Index,
}
