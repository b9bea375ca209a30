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
    last: Option<R::Key>,
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
            last: None,
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
        self.last = None;
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

    /// The next record; `None`: there is none. After an error the cursor is at its end.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "records borrow from the cursor"
    )]
    pub fn next(&mut self) -> Result<Option<(R::Key, R::Value<'_>)>> {
        while !self.is_in_leaf()? {
            if !self.open_next().inspect_err(|_| self.path.clear())? {
                return Ok(None);
            }
        }
        let Some(leaf) = &mut self.leaf else {
            return Ok(None);
        };
        let block = leaf.node().pointer().block;
        let record = leaf.next()?;
        if let Some((key, _)) = &record {
            if self.last.is_some_and(|last| *key <= last) {
                self.path.clear();
                return Err(Error::corrupt(block, Defect::Order));
            }
            self.last = Some(*key);
        }
        Ok(record)
    }

    /// Has the open leaf another record?
    fn is_in_leaf(&mut self) -> Result<bool> {
        match &mut self.leaf {
            Some(leaf) => leaf.has_more(),
            None => Ok(false),
        }
    }

    /// Opens the leaf behind the one that ended. `false`: there is none.
    fn open_next(&mut self) -> Result<bool> {
        self.leaf = None;
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
                self.leaf = Some(Run::new(node));
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
