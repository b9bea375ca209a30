//! A ledger of what was reserved and what was used, for tests.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use holdfast_core::store::Grant;

/// Blocks reserved and used since the last [`take`](Recorder::take), by the whole store.
#[derive(Debug, Default)]
pub(in crate::store) struct Recorder {
    kept: Amounts,
    used: Amounts,
}

#[derive(Debug, Default)]
struct Amounts {
    pages: AtomicU64,
    nodes: AtomicU64,
    journal: AtomicU64,
}

/// Blocks for pages, for a checkpoint, and of the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Blocks {
    pub(in crate::store) pages: u64,
    pub(in crate::store) nodes: u64,
    pub(in crate::store) journal: u64,
}

impl AddAssign for Blocks {
    fn add_assign(&mut self, more: Self) {
        self.pages += more.pages;
        self.nodes += more.nodes;
        self.journal += more.journal;
    }
}

impl Amounts {
    fn take(&self) -> Blocks {
        Blocks {
            pages: self.pages.swap(0, Relaxed),
            nodes: self.nodes.swap(0, Relaxed),
            journal: self.journal.swap(0, Relaxed),
        }
    }
}

impl Recorder {
    pub(in crate::store) fn keep(&self, grant: &Grant) {
        self.kept.pages.fetch_add(grant.pages, Relaxed);
        self.kept.nodes.fetch_add(grant.records, Relaxed);
        self.kept.journal.fetch_add(grant.journal, Relaxed);
    }

    /// Blocks were allocated for pages.
    pub(in crate::store) fn placed(&self, blocks: u64) {
        self.used.pages.fetch_add(blocks, Relaxed);
    }

    /// A checkpoint allocated blocks.
    pub(in crate::store) fn checkpointed(&self, blocks: u64) {
        self.used.nodes.fetch_add(blocks, Relaxed);
    }

    /// What was reserved and what was used since the last call; of the journal only what was
    /// reserved.
    pub(in crate::store) fn take(&self) -> (Blocks, Blocks) {
        (self.kept.take(), self.used.take())
    }
}
