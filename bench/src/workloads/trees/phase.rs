//! What is done to a tree, in this order.

use clap::ValueEnum;
use std::fmt;

/// A phase, named by what a user would type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Phase {
    /// tar xf
    Untar,
    /// find, of what was just unpacked
    Find,
    /// ls -lR
    Ls,
    /// ls -lR again
    LsAgain,
    /// du -s
    Du,
    /// grep -r, which reads every file
    Grep,
    /// grep -r again
    GrepAgain,
    /// grep -r a third time
    GrepThird,
    /// git init, git add, git commit
    GitCommit,
    /// git status
    GitStatus,
    /// cp -a
    Cp,
    /// tar xf of two trees at once
    UntarTwo,
    /// find, with nothing in memory
    ColdFind,
    /// ls -lR, with nothing in memory
    ColdLs,
    /// git status, with nothing in memory
    ColdGitStatus,
    /// tar c, with nothing in memory
    ColdTar,
    /// rm -rf, with nothing in memory
    ColdRm,
}

/// All of them.
pub(super) const PHASES: [Phase; 17] = [
    Phase::Untar,
    Phase::Find,
    Phase::Ls,
    Phase::LsAgain,
    Phase::Du,
    Phase::Grep,
    Phase::GrepAgain,
    Phase::GrepThird,
    Phase::GitCommit,
    Phase::GitStatus,
    Phase::Cp,
    Phase::UntarTwo,
    Phase::ColdFind,
    Phase::ColdLs,
    Phase::ColdGitStatus,
    Phase::ColdTar,
    Phase::ColdRm,
];

impl Phase {
    /// Does it begin with nothing of the tree in memory?
    pub(super) fn is_cold(self) -> bool {
        self >= Self::ColdFind
    }

    /// Does it change the tree? Then it is over when that is durable.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Untar | Self::GitCommit | Self::Cp | Self::UntarTwo | Self::ColdRm
        )
    }

    /// Does it need what this other phase makes?
    fn needs(self, other: Self) -> bool {
        match other {
            Self::Untar => self != Self::UntarTwo,
            Self::GitCommit => matches!(self, Self::GitStatus | Self::ColdGitStatus),
            _ => false,
        }
    }

    /// The program that is not on every machine.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Untar | Self::UntarTwo | Self::ColdTar => "tar",
            Self::Find | Self::ColdFind => "find",
            Self::Ls | Self::LsAgain | Self::ColdLs => "ls",
            Self::Du => "du",
            Self::Grep | Self::GrepAgain | Self::GrepThird => "grep",
            Self::GitCommit | Self::GitStatus | Self::ColdGitStatus => "git",
            Self::Cp => "cp",
            Self::ColdRm => "rm",
        }
    }
}

/// Those that have to run for these to be measured, in their order.
pub(super) fn plan(wanted: &[Phase]) -> Vec<Phase> {
    let needed =
        |phase: &Phase| wanted.contains(phase) || wanted.iter().any(|other| other.needs(*phase));
    PHASES.into_iter().filter(needed).collect()
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_comes_after_what_it_needs() {
        use Phase::{ColdGitStatus, Du, GitCommit, Untar, UntarTwo};
        assert_eq!(
            plan(&[ColdGitStatus, Du]),
            [Untar, Du, GitCommit, ColdGitStatus]
        );
        assert_eq!(plan(&[UntarTwo]), [UntarTwo]);
        assert_eq!(plan(&PHASES), PHASES);
        assert!(
            PHASES.is_sorted(),
            "the order of the run is that of the type"
        );
        assert_eq!(ColdGitStatus.to_string(), "cold-git-status");
        let words: Vec<_> = Phase::value_variants()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(words.len(), PHASES.len());
    }
}
