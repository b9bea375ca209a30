//! Allocating and writing a checkpoint's nodes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use foldhash::fast::RandomState;

use crate::block::BLOCK;
use crate::error::Result;
use crate::space::{self, Extent, Request};
use crate::store::Inner;
use crate::tree::{self, NodeSpace, Pointer};

/// Bytes of nodes collected before they are written.
const BATCH: usize = 4 << 20;

/// The nodes, and external attribute values, of a checkpoint.
pub(in crate::store) struct NewNodes<'s> {
    store: &'s Inner,
    generation: u64,
    work: RefCell<Work>,
}

#[derive(Default)]
struct Work {
    pending: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    /// Extents of the old trees.
    replaced: Vec<Extent>,
    /// Allocated extents: length by first block.
    taken: HashMap<u64, u64, RandomState>,
    /// The change of the node count.
    nodes: i64,
}

impl<'s> NewNodes<'s> {
    pub(in crate::store) fn new(store: &'s Inner, generation: u64) -> Self {
        Self {
            store,
            generation,
            work: RefCell::default(),
        }
    }

    /// Writes what is left and frees the replaced nodes; on an error frees the new ones.
    pub(in crate::store) fn finish(self) -> Result<()> {
        if let Err(error) = self.write_pending() {
            self.abandon();
            return Err(error);
        }
        let work = self.work.into_inner();
        #[cfg(test)]
        self.store.recorder.checkpointed(work.taken.values().sum());
        for extent in work.replaced {
            self.store.space.free_node(extent, self.generation)?;
        }
        // Relaxed: checkpoints are serialized.
        let nodes = &self.store.pool.nodes;
        let count = nodes.load(Ordering::Relaxed);
        nodes.store(count.saturating_add_signed(work.nodes), Ordering::Relaxed);
        Ok(())
    }

    /// Frees everything that was allocated: nothing refers to it.
    pub(super) fn abandon(self) {
        for (start, length) in self.work.into_inner().taken {
            // What cannot be freed is free again after the next open.
            let _ = self.store.space.give_back(Extent::new(start, length));
        }
    }

    pub(in crate::store) fn take(&self, blocks: u64, goal: u64) -> Result<u64, space::Error> {
        let mut request = Request::node(blocks);
        if goal > 0 {
            request = request.near(goal);
        }
        let start = self.store.space.allocate(&request)?.start;
        self.work.borrow_mut().taken.insert(start, blocks);
        Ok(start)
    }

    /// Queues a write.
    pub(in crate::store) fn put(&self, block: u64, bytes: Vec<u8>) -> Result<()> {
        let is_enough = {
            let mut work = self.work.borrow_mut();
            work.bytes += bytes.len();
            work.pending.push((block, bytes));
            work.bytes >= BATCH
        };
        if is_enough {
            self.write_pending()
        } else {
            Ok(())
        }
    }

    /// This extent is free once the checkpoint is done.
    pub(in crate::store) fn replace(&self, extent: Extent) {
        self.work.borrow_mut().replaced.push(extent);
    }

    pub(in crate::store) fn generation(&self) -> u64 {
        self.generation
    }

    fn write_pending(&self) -> Result<()> {
        let mut work = self.work.borrow_mut();
        work.pending.sort_unstable_by_key(|(block, _)| *block);
        work.bytes = 0;
        let mut row: Vec<u8> = Vec::new();
        let mut first = 0;
        for (block, bytes) in work.pending.drain(..) {
            if first + (row.len() / BLOCK) as u64 != block && !row.is_empty() {
                self.store.reader.blocks().write(first, &row)?;
                row.clear();
            }
            if row.is_empty() {
                first = block;
            }
            row.extend_from_slice(&bytes);
        }
        if !row.is_empty() {
            self.store.reader.blocks().write(first, &row)?;
        }
        Ok(())
    }
}

impl NodeSpace for &NewNodes<'_> {
    fn allocate(&mut self, blocks: u16, goal: u64) -> tree::Result<u64> {
        let taken = self.take(u64::from(blocks), goal);
        let block = taken.map_err(|_| tree::Error::NoSpace)?;
        self.work.borrow_mut().nodes += 1;
        Ok(block)
    }

    fn write(&mut self, node: Pointer, bytes: &[u8]) -> tree::Result<()> {
        let put = self.put(node.block, bytes.to_vec());
        put.map_err(|error| tree::Error::Device {
            block: node.block,
            errno: error.errno(),
        })
    }

    fn free(&mut self, node: Pointer) {
        self.replace(node.span());
        self.work.borrow_mut().nodes -= 1;
    }

    fn give_back(&mut self, block: u64, blocks: u16) {
        {
            let mut work = self.work.borrow_mut();
            work.taken.remove(&block);
            work.nodes -= 1;
        }
        // What cannot be freed is free again after the next open.
        let _ = self
            .store
            .space
            .give_back(Extent::new(block, u64::from(blocks)));
    }
}
