//! The calls of the core, as the audit makes them.
//!
//! An operation is prepared and carried out separately, so that only the call itself is recorded.
//! The thread that will carry it out creates what it needs (a file to unlink, a handle to read
//! from) beforehand, and drops what it used afterwards. A reference or handle that the call returns
//! is dropped within the record, as every caller must do.

mod files;
mod names;
mod whole;

use holdfast_core::types::Result;

use crate::setup::Setup;

/// Something that can be carried out, once.
pub(crate) type Action = Box<dyn FnMut() -> Result<()>>;

/// One of the core's calls.
pub(crate) struct Operation {
    /// As the table calls it.
    pub(crate) name: &'static str,
    traits: &'static [Trait],
    /// Makes what it needs.
    pub(crate) prepare: fn(Setup) -> Result<Action>,
}

/// What there is to know about an operation: with what it commutes follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// It is about names of a directory.
    Names,
    /// It is about a file, by handle or node.
    File,
    /// It is about a page of a file, and can be told which.
    Page,
    /// It only tells: two of these commute on the same object.
    Reads,
    /// It tells all names of a directory.
    Lists,
    /// It adds or removes names.
    ChangesNames,
    /// It tells how much space is taken.
    TellsSpace,
    /// How much space is taken is another afterwards.
    ChangesSpace,
}

impl Operation {
    pub(crate) fn is(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }
}

/// All operations, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    names::LOOKING
        .iter()
        .chain(names::CHANGING)
        .chain(files::READING)
        .chain(files::WRITING)
        .chain(whole::WHOLE)
}

/// The operation of this name.
pub(crate) fn named(name: &str) -> Option<&'static Operation> {
    all().find(|operation| operation.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut names = HashSet::new();
        for operation in all() {
            assert!(names.insert(operation.name), "{}", operation.name);
            assert!(named(operation.name).is_some());
        }
    }

    #[test]
    fn what_only_reads_changes_neither_names_nor_space() {
        for operation in all().filter(|operation| operation.is(Trait::Reads)) {
            let changes = [Trait::ChangesNames, Trait::ChangesSpace];
            assert!(
                changes.iter().all(|&what| !operation.is(what)),
                "{}",
                operation.name
            );
        }
    }
}
