//! Names of users and groups: an archive has names and numbers, a file system only numbers.

use std::fmt;

/// A user or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// A user.
    User,
    /// A group.
    Group,
}

/// A database of the names of users and groups.
pub trait Owners: fmt::Debug + Send + Sync {
    /// The number of one with this name.
    fn number(&self, kind: Named, name: &[u8]) -> Option<u32>;

    /// The name of one with this number.
    fn name(&self, kind: Named, number: u32) -> Option<Vec<u8>>;
}
