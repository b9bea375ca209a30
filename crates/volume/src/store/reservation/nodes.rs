//! Nodes of the trees beyond their part of the memory: the part gets smaller as changes wait or the process grows otherwise, and then
//! they are reclaimed.

use std::marker::PhantomData;

use holdfast_core::shrinkers::{Count, Load, Request, Scan, Shrinker};

use crate::store::load::device::Blocks;
use crate::tree::NodeCache;

/// What has nodes in memory.
pub(in crate::store) trait HasNodes: Send + Sync + 'static {
    fn nodes(&self) -> &NodeCache<Blocks>;
}

/// Frees nodes.
#[derive(Debug)]
pub(in crate::store) struct Nodes<O>(PhantomData<fn(&O)>);

impl<O> Nodes<O> {
    pub(in crate::store) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<O: HasNodes> Shrinker for Nodes<O> {
    type Owner = O;

    fn name(&self) -> &'static str {
        "nodes"
    }

    /// They are what the device has.
    fn needs_store(&self) -> bool {
        false
    }

    fn load(&self, store: &O) -> Load {
        let most = store.nodes().most() as u64;
        Load {
            held: store.nodes().counts().bytes as u64,
            wake: most,
            stop: most,
            wait: u64::MAX,
        }
    }

    fn count(&self, store: &O) -> Count {
        match store.nodes().counts().nodes {
            0 => Count::Empty,
            nodes => Count::Objects(nodes as u64),
        }
    }

    fn scan(&self, store: &O, request: Request) -> Scan {
        match store.nodes().shrink(request.objects) {
            // None of its shards has too much.
            (_, left) if left == request.objects => Scan::Stop,
            (gone, _) => Scan::Freed(gone),
        }
    }
}
