//! Changing a tree: a sorted stream of changes makes a new root.
//!
//! The old tree is walked from left to right along with the changes. Leaves that no change
//! touches are taken over by their pointer, whole subtrees at once; of the others, blocks of records
//! that no change touches are copied, and the rest is read record by record and written anew, packed
//! full where changes are dense. Nothing is changed in place.
//!
//! *Invariants.* Changes ascend strictly. At any moment all records below the last change are in
//! the output, and all above are still to be read. An error, or dropping the merge, leaves the
//! old tree as it is and gives back every block that was taken.
//!
//! *Balance.* A leaf or interior node below a third of its room is joined with its neighbour,
//! unless it is the last of its level: the right edge stays as it is, so that appending fills
//! every node.

use super::cache::NodeSource;
use super::error::{Defect, Error, Result};
use super::lookup::{Tree, child};
use super::node::{Birth, Node};
use super::output::{NodeSpace, Output};
use super::pointer::{LEVEL_MAX, Pointer, Root};
use super::record::Record;
use super::run::{Below, Run};
use super::shape::Shape;

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<V> {
    /// It gets this value, whether it was there or not.
    Put(V),
    /// It goes, if it was there.
    Delete,
}

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The new tree; `None`: it is empty.
    pub root: Option<Root>,
    /// Nodes written.
    pub written: u64,
    /// Nodes of the old tree that were freed.
    pub freed: u64,
    /// Keys that were not there before.
    pub added: u64,
    /// Keys that got a new value.
    pub replaced: u64,
    /// Keys that went.
    pub deleted: u64,
    /// Deletions of what was not there.
    pub missing: u64,
}

/// A merge under way: give it changes in ascending order, then finish it.
#[derive(Debug)]
pub struct Merge<'c, 's, R: Record, S, N: NodeSpace> {
    tree: Tree<'c, R, S>,
    output: Output<'s, R, N>,
    started: bool,
    /// Interior nodes of the old tree on the way to where the merge is.
    path: Vec<Step<R>>,
    /// The old leaf it is in.
    leaf: Option<OldLeaf<R>>,
    last: Option<R::Key>,
    done: Merged,
}

#[derive(Debug)]
struct Step<R: Record> {
    node: Node,
    next: usize,
    /// Keys below it lie under this one.
    end: Option<R::Key>,
}

#[derive(Debug)]
struct OldLeaf<R: Record> {
    run: Run<R>,
    end: Option<R::Key>,
}

/// Is all that ends at `end` below `key`? `None` is beyond all keys.
fn ends_before<K: Ord>(end: Option<&K>, key: Option<&K>) -> bool {
    match (end, key) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(key)) => end <= key,
    }
}

impl<'c, R: Record, S: NodeSource> Tree<'c, R, S> {
    /// Begins to change this tree into a new one, whose nodes go to `space`.
    pub fn merge<'s, N: NodeSpace>(
        &self,
        birth: Birth,
        shape: Shape,
        space: &'s mut N,
    ) -> Merge<'c, 's, R, S, N> {
        let goal = self.root.map_or(0, |root| root.node.block);
        let volume = self.cache.source().volume();
        Merge {
            tree: *self,
            output: Output::new(space, shape, birth, volume, goal),
            started: false,
            path: Vec::new(),
            leaf: None,
            last: None,
            done: Merged::default(),
        }
    }

    /// Changes this tree into a new one by all of `changes`, which ascend strictly.
    ///
    /// # Errors
    /// Those of the changes, of reading and of `space`, and [`Error::Unsorted`]. Then nothing of
    /// this tree was touched and every block taken was given back.
    pub fn merge_all<'v, N, E, I>(
        &self,
        birth: Birth,
        shape: Shape,
        space: &mut N,
        changes: I,
    ) -> Result<Merged, E>
    where
        N: NodeSpace,
        E: From<Error>,
        I: IntoIterator<Item = Result<(R::Key, Change<R::Value<'v>>), E>>,
    {
        let mut merge = self.merge(birth, shape, space);
        for change in changes {
            match change? {
                (key, Change::Put(value)) => merge.put(key, &value)?,
                (key, Change::Delete) => merge.delete(key)?,
            }
        }
        Ok(merge.finish()?)
    }
}

impl<R: Record, S: NodeSource, N: NodeSpace> Merge<'_, '_, R, S, N> {
    /// `key` gets `value`.
    ///
    /// # Errors
    /// As [`Tree::merge_all`]; the merge can then only be dropped.
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

    /// `key` goes.
    ///
    /// # Errors
    /// As [`Tree::merge_all`]; the merge can then only be dropped.
    #[inline]
    pub fn delete(&mut self, key: R::Key) -> Result<()> {
        if self.reach(key)? {
            self.done.deleted += 1;
        } else {
            self.done.missing += 1;
        }
        Ok(())
    }

    /// Brings everything below `key` to the output and takes `key` from the old tree. Was it
    /// there?
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
            Some(leaf) => !ends_before(leaf.end.as_ref(), Some(&key)),
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

    /// Goes into an old node, which will not be part of the new tree.
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

    /// Goes on to the leaf in whose range `key` lies (`None`: to the end), and takes over all
    /// before it.
    fn advance(&mut self, key: Option<&R::Key>) -> Result<()> {
        let Some(root) = self.tree.root else {
            return Ok(());
        };
        loop {
            if let Some(leaf) = &self.leaf {
                if !ends_before(leaf.end.as_ref(), key) {
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
            if ends_before(end.as_ref(), key) && self.output.make_room(level)? {
                self.output.reuse(first, pointer, level)?;
            } else {
                // Where neighbours changed, the next ones mostly do: then they come with it.
                let node = (self.tree.cache).load_child::<R>(&step.node, step.next - 1, level)?;
                self.enter(node, level, end);
            }
        }
    }

    /// Copies the records of the open leaf that lie below `key`, whole blocks at once, and takes out `key` itself.
    /// Was it there?
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

    /// Takes over all that is left and writes the last nodes.
    ///
    /// # Errors
    /// As [`Tree::merge_all`].
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
        // Old roots may still be read; their nodes need not stay in memory for that.
        for node in self.output.replaced_nodes() {
            self.tree.cache.forget(*node);
        }
        self.output.finish();
        Ok(done)
    }

    /// A root with one child gives way to it.
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
