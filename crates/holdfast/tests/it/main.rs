//! The public interface of the library.

mod archives;
mod concurrency;
mod handles;
mod listing;
mod open_files;
mod quota;
mod revoke;
mod side_by_side;
mod volumes;

use holdfast::{Caller, FileSystem};

/// A file system in memory for the superuser, by any user that runs the tests.
fn superuser() -> FileSystem {
    FileSystem::builder().caller(Caller::root()).build()
}
