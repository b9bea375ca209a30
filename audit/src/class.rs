//! The groups of pairs that are counted.

use crate::operation::Operation;
use crate::placement::{Pair, Placement};

/// A group of pairs.
#[derive(Clone, Copy)]
pub(crate) struct Class {
    /// As the file of constants has it.
    pub(crate) word: &'static str,
    /// As the table has it.
    pub(crate) title: &'static str,
    pub(crate) holds: fn(&Pair) -> bool,
}

/// Those that must have no conflict at all.
pub(crate) const CLEAN: &[Class] = &[
    Class {
        word: "reading",
        title: "lookup, stat, open, read of anything",
        holds: |pair| pair.sides.iter().all(|operation| is_reading(operation)),
    },
    Class {
        word: "making",
        title: "create, unlink in different directories",
        holds: |pair| {
            pair.placement == Placement::Directories && all_of(pair, &["create", "unlink"])
        },
    },
    Class {
        word: "writing",
        title: "write to different files",
        holds: |pair| {
            matches!(pair.placement, Placement::Directories | Placement::Files)
                && all_of(pair, &["write", "append"])
        },
    },
];

/// Each operation beside itself: a small sample of all pairs.
pub(crate) const TWINS: Class = Class {
    word: "twins",
    title: "each operation beside itself",
    holds: |pair| pair.sides[0].name == pair.sides[1].name,
};

/// Every pair that commutes.
pub(crate) const ALL: Class = Class {
    word: "all",
    title: "all pairs",
    holds: |_| true,
};

/// What a quick run tries: enough for the classes that it can judge.
pub(crate) fn is_quick(pair: &Pair) -> bool {
    CLEAN
        .iter()
        .chain([&TWINS])
        .any(|class| (class.holds)(pair))
}

fn is_reading(operation: &Operation) -> bool {
    [
        "lookup",
        "lookup-absent",
        "stat",
        "resolve",
        "open",
        "getattr",
        "reopen",
        "read",
        "read-byte",
    ]
    .contains(&operation.name)
}

fn all_of(pair: &Pair, names: &[&str]) -> bool {
    pair.sides
        .iter()
        .all(|operation| names.contains(&operation.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation;

    #[test]
    fn every_class_has_pairs_and_names_only_what_exists() {
        let pairs = Pair::all();
        let count = |class: &Class| pairs.iter().filter(|pair| (class.holds)(pair)).count();
        // Eight readers in pairs: in directories, and those of them that fit elsewhere.
        assert!(count(&CLEAN[0]) > 36);
        assert_eq!(count(&CLEAN[1]), 3);
        assert_eq!(count(&CLEAN[2]), 6);
        assert!(count(&TWINS) >= operation::all().count());
        assert!(count(&ALL) > 1000);
    }
}
