//! Counts of a walk.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Failures that are printed with their path.
const PRINTED: u64 = 10;

/// Counted by all workers.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) directories: AtomicU64,
    pub(super) names: AtomicU64,
    pub(super) stats: AtomicU64,
    pub(super) bytes: AtomicU64,
    failed: AtomicU64,
    /// Failures by the text of the error.
    pub(super) errors: Mutex<BTreeMap<String, u64>>,
}

impl Totals {
    /// Counts and prints a failure.
    pub(super) fn failed(&self, path: &Path, error: rustix::io::Errno) {
        let count = self.failed.fetch_add(1, Relaxed);
        let error = std::io::Error::from(error);
        if count < PRINTED {
            anstream::eprintln!("holdfast: {}: {error}", path.display());
        } else if count == PRINTED {
            anstream::eprintln!("holdfast: further ones are only counted");
        }
        *self.errors.lock().entry(error.to_string()).or_default() += 1;
    }
}
