//! The phases, and which of them build on which.

use crate::targets::Target;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is done to every file, or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
pub(crate) enum Phase {
    /// Make the file, close it
    Create,
    /// Ask for its attributes by its path
    Stat,
    /// Open it, close it
    Open,
    /// List its directory with the attributes of each
    Walk,
    /// Meet every inode in memory, each thread its part of them, ten times
    Iterate,
    /// Remove it
    Unlink,
    /// Make the directory, which stays empty
    Mkdir,
    /// Remove it
    Rmdir,
}

/// All phases in the order they run. Those of one plan run in the same processes, and need its
/// first; each plan has fresh ones.
pub(crate) const PLANS: [&[Phase]; 2] = [
    &[
        Phase::Create,
        Phase::Stat,
        Phase::Open,
        Phase::Walk,
        Phase::Iterate,
        Phase::Unlink,
    ],
    &[Phase::Mkdir, Phase::Rmdir],
];

/// How often an iteration is repeated: once is over too soon to be measured.
pub(super) const ITERATIONS: u64 = 10;

/// What resident memory grows by in a phase that makes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grows {
    /// Files.
    Files,
    /// Directories.
    Directories,
}

impl Phase {
    /// All of them, in the order they run.
    pub(crate) fn all() -> Vec<Self> {
        PLANS.concat()
    }

    /// What it makes, and keeps in memory.
    pub(crate) fn grows(self) -> Option<Grows> {
        match self {
            Self::Create => Some(Grows::Files),
            Self::Mkdir => Some(Grows::Directories),
            Self::Stat | Self::Open | Self::Walk | Self::Iterate | Self::Unlink | Self::Rmdir => {
                None
            }
        }
    }

    /// Does the target have such a call?
    pub(crate) fn offered_by(self, target: &Target) -> bool {
        match self {
            Self::Iterate => target.in_process(),
            _ => true,
        }
    }

    /// Did threads of one tree that meet so many have enough of it, with `files` each? An
    /// iteration meets directories too.
    pub(crate) fn is_complete(self, met: u64, threads: usize, files: usize) -> bool {
        let all = (threads * files) as u64;
        match self {
            Self::Iterate => met >= ITERATIONS * all,
            _ => met == all,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}
