//! The phases, and what a worker is told to do for one.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
pub(crate) enum Phase {
    /// Each to a block of its own, at random
    SparseRandom,
    /// One every MiB, forwards
    SparseStride,
    /// A file filled in random order
    Fill,
    /// The same, four writes in a row before each jump
    FillSeq4,
    /// Small files, by many writers
    SmallFiles,
}

impl Phase {
    /// All of them, in the order they run.
    pub(crate) const ALL: [Self; 5] = [
        Self::SparseRandom,
        Self::SparseStride,
        Self::Fill,
        Self::FillSeq4,
        Self::SmallFiles,
    ];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// What a worker does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Step {
    /// Make what the phase writes to.
    Prepare(Phase),
    /// Write, and make it durable: what is measured.
    Run(Phase),
    /// Read some of it back, as far as the target has bytes.
    Check(Phase),
    /// Tell of the last run.
    Tell(Figure),
}

/// What there is to tell, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Figure {
    /// Picoseconds of one write of this part of them.
    Slice(usize),
    /// Nanoseconds of making it durable.
    Sync,
    /// The number of extents of the file, if the target reports it.
    Extents,
}
