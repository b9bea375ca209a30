//! Where the two operations of a pair work, and which pairs commute there.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::operation::{self, Operation, Trait};

/// How the places of the two sides lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Placement {
    /// Each side in a directory of its own.
    Directories,
    /// One directory of a thousand names, each side with its own.
    Names,
    /// One directory, each side with a file of its own, by handle or node.
    Files,
    /// One file, each side with a page of its own.
    Pages,
    /// One file, name, link or directory, which both only look at.
    Object,
    /// One directory of a few names, each side with its own.
    Small,
}

/// Two operations, and how their places lie.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) placement: Placement,
    pub(crate) sides: [&'static Operation; 2],
}

impl Placement {
    pub(crate) const ALL: [Self; 6] = [
        Self::Directories,
        Self::Names,
        Self::Files,
        Self::Pages,
        Self::Object,
        Self::Small,
    ];

    /// As the command line has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Directories => "directories",
            Self::Names => "names",
            Self::Files => "files",
            Self::Pages => "pages",
            Self::Object => "object",
            Self::Small => "small",
        }
    }

    /// As the table has it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Directories => "different directories",
            Self::Names => "same directory, different names",
            Self::Files => "different files",
            Self::Pages => "same file, different pages",
            Self::Object => "reads of the same object",
            Self::Small => "same directory of a few names",
        }
    }

    /// Do both sides use one file, rather than a file each?
    pub(crate) fn shares_objects(self) -> bool {
        matches!(self, Self::Pages | Self::Object)
    }

    /// Do the two have the same outcome there in either order, for everyone? Times and the
    /// numbers of new inodes are left open: any would do.
    fn commute(self, a: &Operation, b: &Operation) -> bool {
        let both = |what| a.is(what) && b.is(what);
        let cross = |one, other| (a.is(one) && b.is(other)) || (b.is(one) && a.is(other));
        if cross(Trait::TellsSpace, Trait::ChangesSpace) {
            return false;
        }
        match self {
            Self::Directories => true,
            Self::Names | Self::Small => {
                both(Trait::Names) && !cross(Trait::Lists, Trait::ChangesNames)
            }
            Self::Files => both(Trait::File),
            Self::Pages => both(Trait::Page),
            Self::Object => both(Trait::Reads),
        }
    }
}

impl Pair {
    /// Every pair that commutes, once.
    pub(crate) fn all() -> Vec<Self> {
        let operations: Vec<&'static Operation> = operation::all().collect();
        let mut pairs = Vec::new();
        for placement in Placement::ALL {
            for (index, &a) in operations.iter().enumerate() {
                for &b in &operations[index..] {
                    if placement.commute(a, b) {
                        pairs.push(Self {
                            placement,
                            sides: [a, b],
                        });
                    }
                }
            }
        }
        pairs
    }

    /// As the table calls it.
    pub(crate) fn name(&self) -> String {
        format!("{} ∥ {}", self.sides[0].name, self.sides[1].name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commute(placement: Placement, a: &str, b: &str) -> bool {
        let named = |name| operation::named(name).expect("known");
        let forth = placement.commute(named(a), named(b));
        assert_eq!(forth, placement.commute(named(b), named(a)));
        forth
    }

    #[test]
    fn a_listing_does_not_commute_with_changes_of_the_same_directory() {
        assert!(!commute(Placement::Names, "readdir", "create"));
        assert!(commute(Placement::Names, "readdir", "lookup"));
        assert!(commute(Placement::Directories, "readdir", "create"));
    }

    #[test]
    fn statfs_does_not_commute_with_what_takes_space() {
        assert!(!commute(Placement::Directories, "statfs", "append"));
        assert!(commute(Placement::Directories, "statfs", "read"));
        assert!(commute(Placement::Object, "statfs", "statfs"));
    }

    #[test]
    fn on_one_object_only_reads_commute() {
        assert!(commute(Placement::Object, "read", "open"));
        assert!(!commute(Placement::Object, "read", "chmod"));
        assert!(commute(Placement::Pages, "read", "write"));
    }

    #[test]
    fn words_are_those_of_the_command_line() {
        for placement in Placement::ALL {
            let value = placement.to_possible_value().expect("not hidden");
            assert_eq!(value.get_name(), placement.word());
        }
    }
}
