//! Options of a mount that concern the content of files.

use std::path::PathBuf;
use std::time::Duration;

/// What a mount chooses about the content of files.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Bytes that may wait for the database. `None`: an eighth of the memory budget.
    pub dirty: Option<u64>,
    /// A directory for blocks of objects on disk.
    pub cache: Option<PathBuf>,
    /// Bytes that it may take.
    pub cache_size: u64,
    /// How long a failing object store is tried before the failure is told.
    pub retry: Duration,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            dirty: None,
            cache: None,
            cache_size: 1 << 30,
            retry: Duration::from_secs(60),
        }
    }
}
