//! The phases, and which of them build on which.

use crate::summary::distinct;
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
    /// Remove it
    Unlink,
    /// Make the directory, which stays empty
    Mkdir,
    /// Remove it
    Rmdir,
    /// As walk, with nothing in memory, the host's caches included
    ColdWalk,
    /// Change the permissions of each, with nothing in memory
    ColdChmod,
    /// Ask for the attributes of all inodes by no path, with nothing in memory; xfs has a call for
    /// it
    Bulkstat,
    /// Remove it, with nothing in memory
    ColdUnlink,
    /// Give up what is held of the tree, before it is made cold
    #[value(skip)]
    Leave,
    /// Make the tree cold
    #[value(skip)]
    Chill,
    /// Come back to it
    #[value(skip)]
    Enter,
}

/// All phases in the order they run. Those of one plan run in the same processes, and need its
/// first; each plan has fresh ones. A phase of several plans is told of by the first of them.
const PLANS: [&[Phase]; 3] = [
    &[
        Phase::Create,
        Phase::Stat,
        Phase::Open,
        Phase::Walk,
        Phase::Unlink,
    ],
    &[Phase::Mkdir, Phase::Rmdir],
    &[
        Phase::Create,
        Phase::ColdWalk,
        Phase::ColdChmod,
        Phase::Bulkstat,
        Phase::ColdUnlink,
    ],
];

/// The plans for a target, each with those of its phases that it tells of.
pub(super) fn plans(target: &Target) -> Vec<(&'static [Phase], Vec<Phase>)> {
    let mut reported = Vec::new();
    let mut plans = Vec::new();
    for plan in PLANS.into_iter().filter(|plan| plan[0].offered_by(target)) {
        let tells = |phase: &Phase| phase.offered_by(target) && !reported.contains(phase);
        let tells: Vec<Phase> = plan.iter().copied().filter(tells).collect();
        reported.extend_from_slice(&tells);
        plans.push((plan, tells));
    }
    plans
}

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
        distinct(PLANS.concat().into_iter())
    }

    /// What it makes, and keeps in memory.
    pub(crate) fn grows(self) -> Option<Grows> {
        match self {
            Self::Create => Some(Grows::Files),
            Self::Mkdir => Some(Grows::Directories),
            _ => None,
        }
    }

    /// Does it begin with nothing in memory?
    pub(crate) fn is_cold(self) -> bool {
        matches!(
            self,
            Self::ColdWalk | Self::ColdChmod | Self::Bulkstat | Self::ColdUnlink
        )
    }

    /// What is done before it, and takes none of its time.
    pub(super) fn before(self) -> &'static [Self] {
        match self {
            phase if phase.is_cold() => &[Self::Leave, Self::Chill, Self::Enter],
            _ => &[],
        }
    }

    /// Does it take memory that was free before?
    pub(super) fn takes_memory(self) -> bool {
        self.grows().is_some() || self.is_cold()
    }

    /// Does it change anything?
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Unlink
                | Self::Mkdir
                | Self::Rmdir
                | Self::ColdChmod
                | Self::ColdUnlink
        )
    }

    /// Does the target have such a call?
    pub(crate) fn offered_by(self, target: &Target) -> bool {
        match self {
            Self::Bulkstat => target.has_bulkstat(),
            Self::ColdWalk | Self::ColdChmod | Self::ColdUnlink => {
                matches!(target, Target::Volume(_) | Target::Directory(_))
            }
            _ => true,
        }
    }

    /// Is `met` the number that `threads` threads of one tree must meet, with `files` files each?
    /// `bulkstat` meets directories as well.
    pub(crate) fn is_complete(self, met: u64, threads: usize, files: usize) -> bool {
        let all = (threads * files) as u64;
        match self {
            Self::Bulkstat => met >= all,
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
