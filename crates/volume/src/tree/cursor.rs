//! Reading records in order of their keys.
//!
//! *Invariants.* Keys ascend strictly over the whole of a scan, or it ends with an error: so it
//! ends, whatever the nodes hold.

use super::cache::NodeSource;
use super::error::{Defect, Error, Result};
use super::lookup::{Tree, child};
use super::node::Node;
use super::pointer::{LEVEL_MAX, Pointer};
use super::record::Record;
use super::run::Run;
use std::ops::ControlFlow;

/// Leaves that are read ahead at once.
const AHEAD: usize = 16;

/// A place between two records of a [`Tree`].
///
/// It holds on to the nodes on its path, so it stays where it is while the tree gets new roots.
/// Whoever keeps the key of the last record can start again behind it with [`Cursor::seek`].
#[derive(Debug)]
pub struct Cursor<'c, R: Record, S> {
    tree: Tree<'c, R, S>,
    /// Interior nodes from the root downwards.
    path: Vec<Step>,
    leaf: Option<Run<R>>,
    /// Leaves opened since the last seek: reading ahead begins with the second.
    opened: usize,
}

#[derive(Debug)]
struct Step {
    node: Node,
    /// The child to go to next.
    next: usize,
    /// Children before this one were asked for ahead.
    ahead: usize,
}

impl<'c, R: Record, S: NodeSource> Cursor<'c, R, S> {
    pub(super) fn new(tree: Tree<'c, R, S>) -> Self {
        Self {
            tree,
            path: Vec::new(),
            leaf: None,
            opened: 0,
        }
    }

    /// Goes before the first record at or above `from`; `None`: before the first of all.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn seek(&mut self, from: Option<&R::Key>) -> Result<()> {
        self.path.clear();
        self.leaf = None;
        self.opened = 0;
        let Some(root) = self.tree.root else {
            return Ok(());
        };
        let mut pointer = root.node;
        let mut level = root.level.min(LEVEL_MAX);
        while level > 0 {
            let node = self.tree.cache.load::<R>(pointer, level)?;
            let upto = from.map_or(Some(0), |key| node.children_upto(key));
            let block = node.pointer().block;
            let upto = upto.ok_or(Error::Corrupt {
                block,
                defect: Defect::Pointer,
            })?;
            let index = upto.saturating_sub(1);
            pointer = child::<R>(&node, index)?.1;
            self.path.push(Step {
                node,
                next: index + 1,
                ahead: 0,
            });
            level -= 1;
        }
        let mut run = Run::new(self.tree.cache.load::<R>(pointer, 0)?);
        if let Some(key) = from {
            run.seek(key)?;
        }
        self.leaf = Some(run);
        Ok(())
    }

    /// The next record; `None`: there is none. After an error only a seek leads on.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "records borrow from the cursor"
    )]
    pub fn next(&mut self) -> Result<Option<(R::Key, R::Value<'_>)>> {
        if !self.reach_record()? {
            return Ok(None);
        }
        match &mut self.leaf {
            Some(leaf) => leaf.next(),
            None => Ok(None),
        }
    }

    /// Calls `read` with this record and those that follow, until it says to stop; the cursor then
    /// stands behind the last one it was called with. Faster than [`Self::next`] in a loop.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn each(
        &mut self,
        mut read: impl FnMut(R::Key, R::Value<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        while self.reach_record()? {
            if let Some(leaf) = &mut self.leaf
                && leaf.each(&mut read)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Goes into the leaf of the next record. `false`: there is none.
    #[inline]
    fn reach_record(&mut self) -> Result<bool> {
        loop {
            if let Some(leaf) = &mut self.leaf
                && leaf.has_more()?
            {
                return Ok(true);
            }
            if !self.open_next()? {
                return Ok(false);
            }
        }
    }

    /// Opens the leaf behind the one that ended. `false`: there is none.
    fn open_next(&mut self) -> Result<bool> {
        let last = self.leaf.take().and_then(|leaf| leaf.last());
        let Some(root) = self.tree.root else {
            return Ok(false);
        };
        while self
            .path
            .last()
            .is_some_and(|step| step.next == step.node.count())
        {
            self.path.pop();
        }
        if self.path.is_empty() {
            return Ok(false);
        }
        loop {
            let level = root.level.min(LEVEL_MAX) - self.path.len() as u8;
            self.opened += usize::from(level == 0);
            self.read_ahead(level)?;
            let Some(step) = self.path.last_mut() else {
                return Ok(false);
            };
            let (_, pointer) = child::<R>(&step.node, step.next)?;
            step.next += 1;
            let node = self.tree.cache.load::<R>(pointer, level)?;
            if level == 0 {
                self.leaf = Some(Run::after(node, last));
                return Ok(true);
            }
            self.path.push(Step {
                node,
                next: 0,
                ahead: 0,
            });
        }
    }

    /// Asks for the leaves that come next.
    fn read_ahead(&mut self, level: u8) -> Result<()> {
        let Some(step) = self.path.last_mut() else {
            return Ok(());
        };
        if level > 0 || self.opened < 2 || step.next < step.ahead {
            return Ok(());
        }
        let end = step.node.count().min(step.next + AHEAD);
        let pointers: Result<Vec<Pointer>> = (step.next..end)
            .map(|index| child::<R>(&step.node, index).map(|(_, pointer)| pointer))
            .collect();
        step.ahead = end;
        self.tree.cache.prefetch::<R>(&pointers?, level);
        Ok(())
    }
}
