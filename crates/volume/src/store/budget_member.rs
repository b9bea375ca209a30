//! The store as a member of the memory budget, and the shrinker of tree nodes.
//!
//! The shrinker frees nodes beyond their share. The share falls as changes pile up or the process
//! grows otherwise.

use holdfast_core::budget::{Class, Member, Usage};
use holdfast_core::shrinkers::{Count, Load, Request, Scan, Shrinker};

use super::Inner;
use super::memtable::Memtable;
use crate::block::BLOCK;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Debug)]
pub(super) struct Nodes;

impl Shrinker for Nodes {
    type Owner = Inner;

    fn name(&self) -> &'static str {
        "nodes"
    }

    /// Nodes are clean.
    fn needs_store(&self) -> bool {
        false
    }

    fn load(&self, store: &Inner) -> Load {
        let most = store.reader.cache.most() as u64;
        Load {
            held: store.reader.cache.counts().bytes as u64,
            wake: most,
            stop: most,
            wait: u64::MAX,
        }
    }

    fn count(&self, store: &Inner) -> Count {
        match store.reader.cache.counts().nodes {
            0 => Count::Empty,
            nodes => Count::Objects(nodes as u64),
        }
    }

    fn scan(&self, store: &Inner, request: Request) -> Scan {
        match store.reader.cache.shrink(request.objects) {
            // No shard of the cache is above its share.
            (_, left) if left == request.objects => Scan::Stop,
            (gone, _) => Scan::Freed(gone),
        }
    }
}

impl Member for Inner {
    fn usage(&self) -> Usage {
        let (changes, pages) = {
            let layers = self.reader.freeze_barrier.pass();
            let changes = layers.memtables().map(Memtable::memory);
            (changes.sum::<u64>(), layers.active.dirty())
        };
        let pages = pages + self.reader.blocks().in_flight.blocks();
        let nodes = self.reader.cache.counts();
        Usage::NONE
            .with(Class::Nodes, (nodes.bytes - nodes.once) as u64)
            .with(Class::Dirty, changes + self.journal.memory())
            .with(Class::Waiting, pages * BLOCK as u64)
    }

    fn limit(&self, all: u64, _own: u64) {
        self.budget.limit.store(all, Relaxed);
        let nodes = usize::try_from(self.budget.nodes()).unwrap_or(usize::MAX);
        self.reader.cache.limit(nodes);
    }
}
