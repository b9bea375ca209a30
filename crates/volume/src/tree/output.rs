//! The new nodes of a merge: takes records and reused pointers in order, and returns a root.
//!
//! Per level there is one open node and one full node before it that is *held back*. If the open
//! node ends too small, because a reused node follows, both are divided anew.
//!
//! *Invariants.* The input ascends. A node is written once, after all below it. Until
//! [`Output::finish`] no node of the old tree was freed, and dropping gives back every block taken.

use super::error::{Defect, Error, Result};
use super::leaf::{Fit, Leaf, LeafWriter};
use super::node::{BLOCK, HEADER, Header, Origin};
use super::node_size::NodeSize;
use super::pointer::{LEVEL_MAX, Pointer};
use super::record::{Key, Record};
use super::run::Coded;

/// Space for new nodes.
pub trait NodeSpace {
    /// Takes `blocks` adjacent blocks, near `goal` (a block number) if possible.
    ///
    /// # Errors
    /// [`Error::NoSpace`], or an error of the search.
    fn allocate(&mut self, blocks: u16, goal: u64) -> Result<u64>;

    /// Writes a node; `bytes` are all its blocks. It need not be on the device before the caller
    /// flushes, but [`super::NodeSource`] must return it once the merge has finished.
    ///
    /// # Errors
    /// The device's.
    fn write(&mut self, node: Pointer, bytes: &[u8]) -> Result<()>;

    /// Frees a node of the old tree that the new one does not use. The old tree remains readable:
    /// the owner reuses the blocks when a superblock without the node is durable and the old root
    /// has no readers.
    fn free(&mut self, node: Pointer);

    /// Gives back blocks that this merge took: it failed.
    fn give_back(&mut self, block: u64, blocks: u16);
}

/// An interior level.
#[derive(Debug)]
struct Level<K> {
    held: Option<Vec<(K, Pointer)>>,
    open: Vec<(K, Pointer)>,
}

impl<K> Level<K> {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.held.is_none()
    }
}

#[derive(Debug)]
pub(super) struct Output<'s, R: Record, N: NodeSpace> {
    pub(super) space: &'s mut N,
    node_size: NodeSize,
    origin: Origin,
    /// The volume's identity.
    volume: u32,
    leaves: LeafWriter<R>,
    held: Option<Leaf<R>>,
    empty_leaf: Leaf<R>,
    /// Interior levels, from level 1 upwards.
    levels: Vec<Level<R::Key>>,
    last: Option<R::Key>,
    goal: u64,
    taken: Vec<Pointer>,
    replaced: Vec<Pointer>,
    done: bool,
}

impl<'s, R: Record, N: NodeSpace> Output<'s, R, N> {
    pub(super) fn new(
        space: &'s mut N,
        node_size: NodeSize,
        origin: Origin,
        volume: u32,
        goal: u64,
    ) -> Self {
        Self {
            space,
            node_size,
            origin,
            volume,
            leaves: LeafWriter::new(node_size),
            held: None,
            empty_leaf: Leaf::default(),
            levels: Vec::new(),
            last: None,
            goal,
            taken: Vec::new(),
            replaced: Vec::new(),
            done: false,
        }
    }

    pub(super) fn written(&self) -> u64 {
        self.taken.len() as u64
    }

    /// Adds a node of the old tree that is not reused.
    pub(super) fn replace(&mut self, node: Pointer) {
        self.replaced.push(node);
    }

    /// The nodes of the old tree that are not reused.
    pub(super) fn replaced_nodes(&self) -> &[Pointer] {
        &self.replaced
    }

    /// Appends a record. `source`: the old leaf it comes from, or 0.
    #[inline]
    pub(super) fn append(&mut self, key: R::Key, value: &R::Value<'_>, source: u64) -> Result<()> {
        if self.last.is_some_and(|last| key <= last) {
            return Err(Error::corrupt(source, Defect::Order));
        }
        self.last = Some(key);
        if self.leaves.append(key, value)? == Fit::Full {
            self.next_leaf()?;
            if self.leaves.append(key, value)? == Fit::Full {
                return Err(Error::Unstorable);
            }
        }
        Ok(())
    }

    /// Copies a block of records of the old leaf `source` with the first key `first`, unless it or
    /// the block before it is too small.
    pub(super) fn copy_block(&mut self, first: R::Key, block: &[u8], source: u64) -> Result<bool> {
        if !self.leaves.end_block() {
            return Ok(false);
        }
        let mut fit = self.leaves.copy_block(first, block);
        if fit == Some(Fit::Full) {
            self.next_leaf()?;
            fit = self.leaves.copy_block(first, block);
        }
        if fit.is_none() {
            return Ok(false);
        }
        if self.last.is_some_and(|last| first <= last) {
            return Err(Error::corrupt(source, Defect::Order));
        }
        // Less than its last key, which was not decoded; the next key lies above that.
        self.last = Some(first);
        Ok(true)
    }

    /// Announces the records of an old block, with changes among them.
    pub(super) fn rewrite_block(&mut self, records: u8) {
        self.leaves.rewrite_block(records);
    }

    /// How many records, and bytes of them, may follow unchanged, coded against `context`.
    #[inline]
    pub(super) fn room_behind(&self, context: &R::Context) -> Option<(u8, usize)> {
        self.leaves.room_behind(context)
    }

    /// Appends coded records of the old leaf `source`; there is [room](Self::room_behind) for them.
    pub(super) fn append_coded(&mut self, coded: &Coded<'_, R>, source: u64) -> Result<()> {
        // They ascend strictly, so the check of the last one covers all.
        if self.last.is_some_and(|last| coded.last <= last) {
            return Err(Error::corrupt(source, Defect::Order));
        }
        self.last = Some(coded.last);
        self.leaves.append_coded(coded);
        Ok(())
    }

    /// Does the next record follow the records of an old leaf?
    pub(super) fn follow(&mut self, old_leaf: bool) {
        self.leaves.follows = old_leaf;
    }

    fn next_leaf(&mut self) -> Result<()> {
        let full = self.leaves.take(std::mem::take(&mut self.empty_leaf));
        if let Some(held) = self.held.replace(full) {
            self.write_leaf(held)?;
        }
        Ok(())
    }

    /// Writes all open nodes below and beside an old node of `level` that is to be reused. `false`:
    /// a node would remain too small, so the old node must be entered.
    pub(super) fn make_room(&mut self, level: u8) -> Result<bool> {
        if !self.leaves.leaf.is_empty() || self.held.is_some() {
            if self.held.is_none() && self.leaves.leaf.used() < self.node_size.low() {
                return Ok(false);
            }
            self.close_leaves(true)?;
        }
        // Closing a level can create the next one.
        for index in 0..usize::from(level) {
            let Some(Level { held, open }) = self.levels.get(index) else {
                break;
            };
            let low = self.node_size.fanout_low::<R::Key>();
            if held.is_none() && !open.is_empty() && open.len() < low {
                return Ok(false);
            }
            self.close_level(index, true)?;
        }
        Ok(true)
    }

    /// Reuses an old node of `level`, after [`Self::make_room`] returned true.
    pub(super) fn reuse(&mut self, key: R::Key, node: Pointer, level: u8) -> Result<()> {
        if self.last.is_some_and(|last| key <= last) {
            return Err(Error::corrupt(node.block, Defect::Range));
        }
        self.last = Some(key);
        self.push(usize::from(level), key, node)
    }

    /// Writes all leaves. With `even`, a small last one is balanced with the one before it.
    fn close_leaves(&mut self, even: bool) -> Result<()> {
        let mut open = self.leaves.take(std::mem::take(&mut self.empty_leaf));
        if let Some(mut held) = self.held.take() {
            if even && !open.is_empty() && open.used() < self.node_size.low() {
                held.balance(&mut open, self.node_size.fill());
            }
            self.write_leaf(held)?;
        }
        if open.is_empty() {
            self.empty_leaf = open;
            return Ok(());
        }
        self.write_leaf(open)
    }

    fn write_leaf(&mut self, mut leaf: Leaf<R>) -> Result<()> {
        let Some(key) = leaf.first() else {
            return Ok(());
        };
        let node = self.allocate(self.node_size.leaf_blocks(leaf.used()))?;
        let header = Header {
            kind: R::KIND as u8,
            level: 0,
            node,
            subvolume: self.origin.subvolume,
            used: leaf.used() as u32,
            count: leaf.records(),
            runs: leaf.runs(),
        };
        let bytes = leaf.finish(usize::from(node.blocks) * BLOCK);
        header.seal(bytes, self.volume);
        self.space.write(node, bytes)?;
        leaf.reset();
        self.empty_leaf = leaf;
        self.push(0, key, node)
    }

    /// Appends a child to interior level `index + 1`.
    fn push(&mut self, index: usize, key: R::Key, node: Pointer) -> Result<()> {
        while self.levels.len() <= index {
            self.levels.push(Level {
                held: None,
                open: Vec::new(),
            });
        }
        let level = &mut self.levels[index];
        level.open.push((key, node));
        if level.open.len() < self.node_size.fanout::<R::Key>() {
            return Ok(());
        }
        let full = std::mem::take(&mut level.open);
        match level.held.replace(full) {
            Some(held) => self.write_interior(index, &held),
            None => Ok(()),
        }
    }

    /// Writes all nodes of interior level `index + 1`.
    fn close_level(&mut self, index: usize, even: bool) -> Result<()> {
        let level = &mut self.levels[index];
        let mut open = std::mem::take(&mut level.open);
        if let Some(mut held) = level.held.take() {
            if even && !open.is_empty() && open.len() < self.node_size.fanout_low::<R::Key>() {
                let keep = (held.len() + open.len()).div_ceil(2);
                let mut moved = held.split_off(keep.min(held.len()));
                moved.append(&mut open);
                open = moved;
            }
            self.write_interior(index, &held)?;
        }
        if open.is_empty() {
            Ok(())
        } else {
            self.write_interior(index, &open)
        }
    }

    fn write_interior(&mut self, index: usize, children: &[(R::Key, Pointer)]) -> Result<()> {
        let Some(&(first, _)) = children.first() else {
            return Ok(());
        };
        if index + 1 > usize::from(LEVEL_MAX) {
            return Err(Error::Unstorable);
        }
        let node = self.allocate(self.node_size.blocks())?;
        let mut bytes = Vec::with_capacity(self.node_size.len());
        bytes.resize(HEADER, 0);
        for (key, child) in children {
            key.write(&mut bytes);
            bytes.extend_from_slice(&child.to_bytes());
        }
        let header = Header {
            kind: R::KIND as u8,
            level: index as u8 + 1,
            node,
            subvolume: self.origin.subvolume,
            used: bytes.len() as u32,
            count: children.len() as u32,
            runs: 0,
        };
        bytes.resize(self.node_size.len(), 0);
        header.seal(&mut bytes, self.volume);
        self.space.write(node, &bytes)?;
        self.push(index + 1, first, node)
    }

    fn allocate(&mut self, blocks: u16) -> Result<Pointer> {
        let block = self.space.allocate(blocks, self.goal)?;
        let node = Pointer {
            block,
            blocks,
            generation: self.origin.generation,
        };
        self.taken.push(node);
        self.goal = block + u64::from(blocks);
        Ok(node)
    }

    /// Writes the open nodes; returns the topmost node and its level, if there is any.
    pub(super) fn close(&mut self) -> Result<Option<(Pointer, u8)>> {
        self.close_leaves(false)?;
        let mut index = 0;
        while index < self.levels.len() {
            let top = self.levels[index + 1..].iter().all(Level::is_empty);
            let level = &self.levels[index];
            if let (true, None, [(_, node)]) = (top, &level.held, level.open.as_slice()) {
                return Ok(Some((*node, index as u8)));
            }
            self.close_level(index, false)?;
            index += 1;
        }
        Ok(None)
    }

    /// Was `node` written here?
    pub(super) fn is_new(&self, node: Pointer) -> bool {
        self.taken.last() == Some(&node)
    }

    /// Frees what was replaced: the new tree is complete.
    pub(super) fn finish(mut self) {
        self.done = true;
        for node in self.replaced.drain(..) {
            self.space.free(node);
        }
    }
}

impl<R: Record, N: NodeSpace> Drop for Output<'_, R, N> {
    fn drop(&mut self) {
        if !self.done {
            for node in self.taken.drain(..) {
                self.space.give_back(node.block, node.blocks);
            }
        }
    }
}
