//! A directory of which nothing is in memory, as one program meets it.

use anyhow::Result;
use holdfast_types::Ino;
use std::path::Path;

/// Names of one call: getdents(2) of the C library's buffer brings about so many.
pub(super) const CALL: usize = 1000;

/// The directory with all files, below the root.
pub(crate) const FILES: &str = "files";
/// The directory with directories of [`SMALL`] files each, below the root.
pub(crate) const TREE: &str = "tree";
/// Files of a small directory.
pub(crate) const SMALL: u64 = 10;

/// A name, and the number that a listing tells with it.
pub(super) type Name = (Ino, Vec<u8>);

/// Holds a directory that has not been listed yet.
pub(super) trait Cold {
    /// Opens a directory below the root.
    ///
    /// # Errors
    /// If that fails.
    fn directory(&self, path: &Path) -> Result<Box<dyn Directory + '_>>;

    /// How often what is below was waited for: reads of the device, requests to the host.
    ///
    /// # Errors
    /// If it does not say so.
    fn waits(&mut self) -> Result<u64>;

    /// Ends it.
    ///
    /// # Errors
    /// If it does not end in good order.
    fn close(self: Box<Self>) -> Result<()>;
}

/// An open directory.
pub(super) trait Directory {
    /// The names of one call, without `.` and `..`; none: all have been told.
    ///
    /// # Errors
    /// If they cannot be read.
    fn some(&mut self) -> Result<Vec<Name>>;

    /// Asks for the attributes of a name.
    ///
    /// # Errors
    /// If they cannot be had, or are not those of such a file.
    fn stat(&self, name: &[u8]) -> Result<()>;

    /// Lists all names with attributes, where there is a call for that. How many it met.
    ///
    /// # Errors
    /// If they cannot be read.
    fn with_attributes(&self) -> Option<Result<u64>>;
}
