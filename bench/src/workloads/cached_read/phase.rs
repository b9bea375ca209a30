//! The phases: what the readers read, and what disturbs them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::mem;

/// What is read beside a writer.
pub(super) const DISTURBED_BYTES: usize = 4096;

/// Kinds of phases, as they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// All threads read the same range of one file
    Read2,
    /// All threads read the same file, each a range of its own
    Pread3,
    /// Reads beside a thread that appends to the file, and to another one
    Append,
    /// Reads beside a thread that overwrites other pages of the file, and of another one
    Overwrite,
}

impl Kind {
    /// In the order they run.
    pub(super) const ALL: [Self; 4] = [Self::Read2, Self::Pread3, Self::Append, Self::Overwrite];

    /// The phases of this kind.
    pub(super) fn phases(self, sizes: &[usize]) -> Vec<Phase> {
        let each = |phase: fn(usize) -> Phase| sizes.iter().copied().map(phase).collect();
        let both = |phase: fn(Place) -> Phase| vec![phase(Place::Apart), phase(Place::Beside)];
        match self {
            Self::Read2 => each(Phase::Read2),
            Self::Pread3 => each(Phase::Pread3),
            Self::Append => both(Phase::Append),
            Self::Overwrite => both(Phase::Overwrite),
        }
    }
}

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Phase {
    /// So many bytes, the same for all.
    Read2(usize),
    /// So many bytes, of its own for each.
    Pread3(usize),
    /// While one more thread appends.
    Append(Place),
    /// While one more thread overwrites pages that are not read.
    Overwrite(Place),
}

/// Which file the writer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Place {
    /// The one that is read.
    Beside,
    /// Another one: as many threads are at work, and as much memory is in use.
    Apart,
}

impl Phase {
    /// Do both the same, but for the place?
    pub(super) fn same_kind(&self, other: &Self) -> bool {
        mem::discriminant(self) == mem::discriminant(other)
    }

    /// Is there a writer?
    pub(super) fn disturbed(self) -> bool {
        matches!(self, Self::Append(_) | Self::Overwrite(_))
    }

    /// Bytes of one read.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Read2(bytes) | Self::Pread3(bytes) => bytes,
            Self::Append(_) | Self::Overwrite(_) => DISTURBED_BYTES,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read2(bytes) => write!(f, "read2-{bytes}"),
            Self::Pread3(bytes) => write!(f, "pread3-{bytes}"),
            Self::Append(place) => write!(f, "append-{place}"),
            Self::Overwrite(place) => write!(f, "overwrite-{place}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beside => "beside",
            Self::Apart => "apart",
        })
    }
}

/// What a thread is told to do.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Step {
    /// What the phase needs, outside the measured time.
    Prepare(Phase),
    /// The phase.
    Run(Phase),
}
