//! File systems with little memory, and with directories that are not there as a whole.

use holdfast_core::{FileSystem, Memory, Options, Store};
use holdfast_types::Result;
use std::sync::Arc;

/// A file system over a store, within a memory apart from other tests' of so many bytes; within the
/// process's without a number.
///
/// # Errors
/// As [`FileSystem::new`].
pub fn within(store: Arc<dyn Store>, options: Options, bytes: Option<u64>) -> Result<FileSystem> {
    let memory = match bytes {
        Some(bytes) => Memory::separate(bytes),
        None => Arc::clone(Memory::of_process()),
    };
    FileSystem::within(store, options, memory)
}

/// The same options, and no directory is kept in memory as a whole.
#[must_use]
pub fn partial(options: Options) -> Options {
    Options {
        whole_directory: 0,
        ..options
    }
}
