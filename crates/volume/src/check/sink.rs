//! Collects findings.

use parking_lot::Mutex;

use super::finding::Finding;

/// Keeps the first findings, and counts the others.
#[derive(Debug)]
pub(super) struct Sink {
    most: usize,
    kept: Mutex<(Vec<Finding>, u64)>,
}

impl Sink {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            kept: Mutex::default(),
        }
    }

    pub(super) fn put(&self, finding: Finding) {
        let mut kept = self.kept.lock();
        if kept.0.len() < self.most {
            kept.0.push(finding);
        } else {
            kept.1 += 1;
        }
    }

    /// The findings, and the number of those not kept.
    pub(super) fn into_findings(self) -> (Vec<Finding>, u64) {
        self.kept.into_inner()
    }
}
