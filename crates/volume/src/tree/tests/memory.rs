//! Space for nodes in memory, for tests: it knows which blocks are in use and can fail.

use super::super::cache::NodeSource;
use super::super::error::{Error, Result};
use super::super::node::BLOCK;
use super::super::output::NodeSpace;
use super::super::pointer::Pointer;
use super::super::{Merged, NodeSize, Origin, Record, Tree};
use holdfast_types::Errno;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change<V> {
    Put(V),
    Delete,
}

/// Blocks in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Nodes by block: what was written, or nothing yet.
    pub(super) nodes: BTreeMap<u64, Vec<u8>>,
    pub(super) lengths: BTreeMap<u64, u16>,
    /// Nodes freed since the last [`Memory::settle`].
    pub(super) freed: Vec<Pointer>,
    /// Calls of `allocate` and `write` that still succeed.
    pub(super) luck: Option<usize>,
    pub(super) reads: usize,
    pub(super) batches: usize,
    /// No read succeeds.
    pub(super) broken: bool,
    next: u64,
}

impl Memory {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A superblock is durable: freed nodes go.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        for node in std::mem::take(&mut state.freed) {
            assert_eq!(
                state.lengths.remove(&node.block),
                Some(node.blocks),
                "freed twice"
            );
            state.nodes.remove(&node.block);
        }
    }
}

impl Memory {
    /// Damages a node.
    pub(super) fn change(&self, block: u64, change: impl FnOnce(&mut Vec<u8>)) {
        change(self.state().nodes.get_mut(&block).expect("a node"));
    }
}

impl State {
    fn try_luck(&mut self) -> bool {
        match &mut self.luck {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

impl NodeSource for &Memory {
    fn volume(&self) -> u32 {
        0
    }

    fn blocks(&self) -> u64 {
        1 << 40
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let mut state = self.state();
        state.reads += 1;
        if state.broken {
            return Err(Errno::EIO);
        }
        // Where nothing was written there are zeros, as on a device.
        let node = state
            .nodes
            .get(&block)
            .and_then(|node| node.get(..bytes.len()));
        match node {
            Some(node) => bytes.copy_from_slice(node),
            None => bytes.fill(0),
        }
        Ok(())
    }

    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        self.state().batches += 1;
        reads
            .iter_mut()
            .try_for_each(|(block, bytes)| self.read(*block, bytes))
    }
}

impl NodeSpace for &Memory {
    fn allocate(&mut self, blocks: u16, goal: u64) -> Result<u64> {
        let mut state = self.state();
        if !state.try_luck() {
            return Err(Error::NoSpace);
        }
        let _ = goal;
        state.next += u64::from(blocks);
        let block = state.next;
        state.lengths.insert(block, blocks);
        Ok(block)
    }

    fn write(&mut self, node: Pointer, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        if !state.try_luck() {
            return Err(Error::Device {
                block: node.block,
                errno: Errno::EIO,
            });
        }
        assert_eq!(bytes.len(), usize::from(node.blocks) * BLOCK);
        assert_eq!(state.lengths.get(&node.block), Some(&node.blocks));
        state.nodes.insert(node.block, bytes.to_vec());
        Ok(())
    }

    fn free(&mut self, node: Pointer) {
        self.state().freed.push(node);
    }

    fn give_back(&mut self, block: u64, blocks: u16) {
        let mut state = self.state();
        assert_eq!(state.lengths.remove(&block), Some(blocks), "not taken");
        state.nodes.remove(&block);
    }
}

impl<R: Record, S: NodeSource> Tree<'_, R, S> {
    /// Changes this tree into a new one by all of `changes`, which ascend strictly.
    ///
    /// # Errors
    /// Those of the changes, of reading and of `space`, and [`Error::Unsorted`]. This tree is then
    /// unchanged and every block taken was given back.
    pub(super) fn merge_all<'v, N, E, I>(
        &self,
        origin: Origin,
        node_size: NodeSize,
        space: &mut N,
        changes: I,
    ) -> Result<Merged, E>
    where
        N: NodeSpace,
        E: From<Error>,
        I: IntoIterator<Item = Result<(R::Key, Change<R::Value<'v>>), E>>,
    {
        let mut merge = self.merge(origin, node_size, space);
        for change in changes {
            match change? {
                (key, Change::Put(value)) => merge.put(key, &value)?,
                (key, Change::Delete) => merge.delete(key)?,
            }
        }
        Ok(merge.finish()?)
    }
}
