//! Changes a tree: a sorted stream of changes makes a new root.
//!
//! The old tree is walked from left to right along with the changes. Leaves without a change are
//! reused by their pointer, whole subtrees at once. Of the others, blocks of records without a
//! change are copied, and the remaining records are coded again, packed full where changes are
//! dense. No node is changed in place.
//!
//! *Invariants.* Changes ascend strictly. At any moment all records below the last change are in
//! the output, and all above are still to be read. An error, or dropping the merge, leaves the old
//! tree as it is and gives back every block that was taken.
//!
//! *Balance.* A leaf or interior node below a third of its room is joined with its neighbour,
//! unless it is the last of its level. The right edge is left alone, so that appending fills every
//! node.

use super::cache::{NodeSource, Use};
use super::error::{Defect, Error, Result};
use super::lookup::Tree;
use super::node::{Node, Origin, child};
use super::node_size::NodeSize;
use super::output::{NodeSpace, Output};
use super::pointer::{LEVEL_MAX, Pointer, Root};
use super::record::Record;
use super::run::{Below, Run};

/// The result of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The new tree; `None`: it is empty.
    pub root: Option<Root>,
    /// Nodes written.
    pub written: u64,
    /// Nodes of the old tree that were freed.
    pub freed: u64,
    /// Keys that did not exist before.
    pub added: u64,
    /// Keys that got a new value.
    pub replaced: u64,
    /// Keys that were deleted.
    pub deleted: u64,
    /// Deletions of keys that did not exist.
    pub missing: u64,
}

/// A merge in progress: takes changes in ascending order, until it is finished.
#[derive(Debug)]
pub struct Merge<'c, 's, R: Record, S, N: NodeSpace> {
    tree: Tree<'c, R, S>,
    output: Output<'s, R, N>,
    started: bool,
    /// Interior nodes of the old tree on the path to the current leaf.
    path: Vec<Step<R>>,
    /// The current old leaf.
    leaf: Option<OldLeaf<R>>,
    last: Option<R::Key>,
    done: Merged,
}

#[derive(Debug)]
struct Step<R: Record> {
    node: Node,
    next: usize,
    /// All keys below it are less than this one.
    end: Option<R::Key>,
}

#[derive(Debug)]
struct OldLeaf<R: Record> {
    run: Run<R>,
    end: Option<R::Key>,
}

/// Is everything that ends at `end` below `key`? `None` is beyond all keys.
fn is_before<K: Ord>(end: Option<&K>, key: Option<&K>) -> bool {
    match (end, key) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(key)) => end <= key,
    }
}

impl<'c, R: Record, S: NodeSource> Tree<'c, R, S> {
    /// Begins to change this tree into a new one, with nodes in `space`.
    pub fn merge<'s, N: NodeSpace>(
        &self,
        origin: Origin,
        node_size: NodeSize,
        space: &'s mut N,
    ) -> Merge<'c, 's, R, S, N> {
        let goal = self.root.map_or(0, |root| root.node.block);
        let volume = self.cache.source().volume();
        Merge {
            tree: *self,
            output: Output::new(space, node_size, origin, volume, goal),
            started: false,
            path: Vec::new(),
            leaf: None,
            last: None,
            done: Merged::default(),
        }
    }
}

impl<R: Record, S: NodeSource, N: NodeSpace> Merge<'_, '_, R, S, N> {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// [`Error::Unsorted`], and those of reading and of `space`. The merge can then only be
    /// dropped, which leaves the old tree as it is.
    #[inline]
    pub fn put(&mut self, key: R::Key, value: &R::Value<'_>) -> Result<()> {
        if !R::is_storable(key, value) {
            return Err(Error::Unstorable);
        }
        if self.reach(key)? {
            self.done.replaced += 1;
        } else {
            self.done.added += 1;
        }
        self.output.append(key, value, 0)
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// [`Error::Unsorted`], and those of reading and of `space`. The merge can then only be
    /// dropped, which leaves the old tree as it is.
    #[inline]
    pub fn delete(&mut self, key: R::Key) -> Result<()> {
        if self.reach(key)? {
            self.done.deleted += 1;
        } else {
            self.done.missing += 1;
        }
        Ok(())
    }

    /// Copies everything below `key` to the output and removes `key` from the old tree. Did it
    /// exist?
    #[inline]
    fn reach(&mut self, key: R::Key) -> Result<bool> {
        if self.last.is_some_and(|last| key <= last) {
            return Err(Error::Unsorted);
        }
        self.last = Some(key);
        if !self.started {
            self.start()?;
        }
        let inside = match &self.leaf {
            Some(leaf) => !is_before(leaf.end.as_ref(), Some(&key)),
            None => false,
        };
        if !inside {
            self.advance(Some(&key))?;
        }
        self.copy_below(Some(&key))
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        match self.tree.root {
            Some(root) if root.level <= LEVEL_MAX => {
                let node = self.tree.cache.load::<R>(root.node, root.level)?;
                self.enter(node, root.level, None);
                Ok(())
            }
            Some(root) => Err(Error::corrupt(root.node.block, Defect::Pointer)),
            None => Ok(()),
        }
    }

    /// Enters an old node, which will not be part of the new tree.
    fn enter(&mut self, node: Node, level: u8, end: Option<R::Key>) {
        self.output.replace(node.pointer());
        if level == 0 {
            self.output.follow(true);
            self.leaf = Some(OldLeaf {
                run: Run::new(node),
                end,
            });
        } else {
            self.path.push(Step { node, next: 0, end });
        }
    }

    /// Moves on to the leaf with `key` in its range (`None`: to the end), and reuses everything
    /// before it.
    fn advance(&mut self, key: Option<&R::Key>) -> Result<()> {
        let Some(root) = self.tree.root else {
            return Ok(());
        };
        loop {
            if let Some(leaf) = &self.leaf {
                if !is_before(leaf.end.as_ref(), key) {
                    return Ok(());
                }
                self.copy_below(None)?;
                self.leaf = None;
            }
            let depth = self.path.len() as u8;
            let Some(step) = self.path.last_mut() else {
                return Ok(());
            };
            if step.next == step.node.count() {
                self.path.pop();
                continue;
            }
            let level = root.level - depth;
            let (first, pointer) = child::<R>(&step.node, step.next)?;
            step.next += 1;
            let end = match step.next == step.node.count() {
                true => step.end,
                false => Some(child::<R>(&step.node, step.next)?.0),
            };
            if is_before(end.as_ref(), key) && self.output.make_room(level)? {
                self.output.reuse(first, pointer, level)?;
            } else {
                // Where neighbours changed, the next ones mostly do: they are read ahead.
                let (cache, index) = (self.tree.cache, step.next - 1);
                let node = cache.load_child::<R>(Use::Reused, &step.node, index, level)?;
                self.enter(node, level, end);
            }
        }
    }

    /// Copies the records of the open leaf below `key`, whole blocks at once, and skips `key`
    /// itself. Did it exist?
    #[inline]
    fn copy_below(&mut self, key: Option<&R::Key>) -> Result<bool> {
        let Some(OldLeaf { run, .. }) = &mut self.leaf else {
            return Ok(false);
        };
        let block = run.node().pointer().block;
        loop {
            if run.is_between_blocks() {
                while let Some((first, bytes)) = run.whole_block_below(key)? {
                    if !self.output.copy_block(first, bytes, block)? {
                        break;
                    }
                    run.skip_block(first);
                }
                self.output.rewrite_block(run.records_of_next_block());
            } else if let Some((records, bytes)) = self.output.room_behind(&run.context())
                && let Some(coded) = run.coded_below(key, records, bytes)?
            {
                self.output.append_coded(&coded, block)?;
                continue;
            }
            let met = match run.next_below(key)? {
                Below::Record(found, value) => {
                    self.output.append(found, &value, block)?;
                    continue;
                }
                Below::Met => true,
                Below::Above => false,
                Below::End => {
                    self.output.follow(false);
                    false
                }
            };
            if met {
                run.next()?;
            }
            return Ok(met);
        }
    }

    /// Reuses everything that is left and writes the last nodes.
    ///
    /// # Errors
    /// Those of reading and of `space`.
    pub fn finish(mut self) -> Result<Merged> {
        if !self.started {
            let done = Merged {
                root: self.tree.root,
                ..self.done
            };
            self.output.finish();
            return Ok(done);
        }
        self.advance(None)?;
        let mut done = self.done;
        let records = (self.tree.records() + done.added).checked_sub(done.deleted);
        if let Some((node, level)) = self.output.close()? {
            let (node, level) = self.lower(node, level)?;
            let damaged = || Error::corrupt(node.block, Defect::Layout);
            done.root = Some(Root {
                node,
                level,
                records: records.ok_or_else(damaged)?,
            });
        }
        done.written = self.output.written();
        done.freed = self.output.replaced_nodes().len() as u64;
        // Readers of old roots need not find their nodes in memory.
        for node in self.output.replaced_nodes() {
            self.tree.cache.forget(*node);
        }
        self.output.finish();
        Ok(done)
    }

    /// Replaces a root with one child by the child.
    fn lower(&mut self, mut node: Pointer, mut level: u8) -> Result<(Pointer, u8)> {
        while level > 0 && !self.output.is_new(node) {
            let old = self.tree.cache.load::<R>(node, level)?;
            if old.count() > 1 {
                break;
            }
            self.output.replace(node);
            node = child::<R>(&old, 0)?.1;
            level -= 1;
        }
        Ok((node, level))
    }
}
