//! Changes of records that the bitmaps do not have yet, and the cut of the checkpoint in progress.

use super::Extent;
use super::group::Cut;
use crate::primitive::{AtomicBool, AtomicU64, Mutex, Ordering};
use holdfast_sync::PerCore;

/// A change of data's records, queued and not applied to the bitmaps yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) lsn: u64,
    pub(super) extent: Extent,
    pub(super) kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeKind {
    Record,
    Free,
    /// Freed and no longer recorded, but not reusable before its LSN is durable.
    Forgotten,
}

/// State under the lock that orders changes of records.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// All changes up to this LSN are applied, or will be before the cut.
    pub(super) applied: u64,
    /// Replaced nodes, and the generation of the checkpoint that replaced each.
    pub(super) nodes: Vec<(u64, Extent)>,
    /// Data durably freed behind the cut of the checkpoint in progress. That checkpoint's bitmaps
    /// have it as used, and a replay frees it. If a node of the same checkpoint were placed there,
    /// the replay would free the node.
    pub(super) kept: Vec<Extent>,
    /// Groups written for the checkpoint in progress.
    pub(super) written: Vec<u64>,
}

/// The changes, by core, and what orders them.
#[derive(Debug, Default)]
pub(super) struct Records {
    queues: PerCore<Mutex<Vec<Change>>>,
    pub(super) order: Mutex<Order>,
    /// The number of checkpoints begun, and whether the bitmaps of one are still to be written.
    /// Changed under `order`.
    cuts: AtomicU64,
    in_checkpoint: AtomicBool,
}

impl Records {
    pub(super) fn extend(&self, changes: impl IntoIterator<Item = Change>) {
        self.queues.mine().lock().extend(changes);
    }

    /// The changes up to an LSN, records before frees. Blocks are recorded before they are freed,
    /// and not recorded again before the free is applied.
    pub(super) fn drain(&self, lsn: u64) -> Vec<Change> {
        let mut due: Vec<Change> = Vec::new();
        for changes in self.queues.iter() {
            due.extend(changes.lock().extract_if(.., |change| change.lsn <= lsn));
        }
        due.sort_unstable_by_key(|change| (change.kind, change.extent));
        due
    }

    pub(super) fn cut(&self) -> Cut {
        Cut {
            number: self.cuts.load(Ordering::Relaxed),
            open: self.in_checkpoint.load(Ordering::Relaxed),
        }
    }

    /// Opens the next cut. `order` is locked.
    pub(super) fn open_cut(&self) {
        // Relaxed: read under `order`, or under a group's lock by holders of `order`.
        self.cuts.fetch_add(1, Ordering::Relaxed);
        self.in_checkpoint.store(true, Ordering::Relaxed);
    }

    /// No change is behind the cut any more. `order` is locked.
    pub(super) fn close_cut(&self) {
        self.in_checkpoint.store(false, Ordering::Relaxed);
    }

    /// Blocks that a commit will free, and those that a checkpoint will free.
    pub(super) fn deferred(&self) -> (u64, u64) {
        let order = self.order.lock();
        let nodes = order.nodes.iter().map(|(_, node)| node);
        let with_checkpoint = nodes.chain(&order.kept).map(|extent| extent.length).sum();
        drop(order);
        let data = self.queues.iter().map(|changes| {
            let changes = changes.lock();
            let freed = changes
                .iter()
                .filter(|change| change.kind != ChangeKind::Record);
            freed.map(|change| change.extent.length).sum::<u64>()
        });
        (data.sum(), with_checkpoint)
    }
}
