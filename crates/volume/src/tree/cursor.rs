//! Reads records in order of their keys.
//!
//! *Invariants.* Keys ascend strictly over a whole scan, or it ends with an error. So it ends for
//! any content of the nodes.

use super::cache::{NodeSource, Use};
use super::error::{Defect, Error, Result};
use super::lookup::Tree;
use super::node::{Node, child};
use super::pointer::LEVEL_MAX;
use super::record::Record;
use super::run::{Below, Run};
use std::ops::ControlFlow;

/// A position between two records of a [`Tree`].
///
/// It keeps the nodes on its path, so it remains valid while the tree gets new roots. From the key
/// of the last record, [`Cursor::seek`] continues behind it.
#[derive(Debug)]
pub struct Cursor<'c, R: Record, S> {
    tree: Tree<'c, R, S>,
    /// Interior nodes from the root downwards.
    path: Vec<Step>,
    leaf: Option<Run<R>>,
    /// The range of keys of the open leaf, once computed.
    span: Option<Span<R::Key>>,
    usage: Use,
}

/// The most records that are read one by one on the way to the next wanted key.
const PASSED_MAX: usize = 32;

/// From the first key to before the second; `None`: unbounded.
type Span<K> = (Option<K>, Option<K>);

#[derive(Debug)]
struct Step {
    node: Node,
    /// The next child.
    next: usize,
}

impl<'c, R: Record, S: NodeSource> Tree<'c, R, S> {
    /// A cursor before the first record at or above `from`; `None`: before the first of all.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn range(&self, from: Option<&R::Key>) -> Result<Cursor<'c, R, S>> {
        self.cursor(Use::Reused, from)
    }

    /// Like [`Self::range`], for a scan of all records: the nodes that only the scan reads are not
    /// kept.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn scan(&self, from: Option<&R::Key>) -> Result<Cursor<'c, R, S>> {
        self.cursor(Use::Once, from)
    }

    fn cursor(&self, usage: Use, from: Option<&R::Key>) -> Result<Cursor<'c, R, S>> {
        let mut cursor = Cursor {
            tree: *self,
            path: Vec::new(),
            leaf: None,
            span: None,
            usage,
        };
        cursor.seek(from)?;
        Ok(cursor)
    }
}

impl<'c, R: Record, S: NodeSource> Cursor<'c, R, S> {
    /// Moves before the first record at or above `from`; `None`: before the first of all.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn seek(&mut self, from: Option<&R::Key>) -> Result<()> {
        hop!();
        self.descend(from)?;
        match (&mut self.leaf, from) {
            (Some(leaf), Some(key)) => leaf.seek(key),
            _ => Ok(()),
        }
    }

    /// Opens the leaf that holds `from` if any does.
    fn descend(&mut self, from: Option<&R::Key>) -> Result<()> {
        self.path.clear();
        self.span = None;
        self.leaf = None;
        let Some(root) = self.tree.root else {
            return Ok(());
        };
        let mut level = root.level.min(LEVEL_MAX);
        let (cache, usage) = (self.tree.cache, self.usage);
        let mut node = cache.load_for::<R>(usage, root.node, level)?;
        while level > 0 {
            let upto = from.map_or(Some(0), |key| node.children_upto(key));
            let block = node.pointer().block;
            let upto = upto.ok_or(Error::Corrupt {
                block,
                defect: Defect::Pointer,
            })?;
            let index = upto.saturating_sub(1);
            level -= 1;
            let below = cache.load_child::<R>(usage, &node, index, level)?;
            self.path.push(Step {
                node,
                next: index + 1,
            });
            node = below;
        }
        self.leaf = Some(Run::new(node));
        Ok(())
    }

    /// The next record; `None` at the end. After an error only a seek continues.
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

    /// The next record if it lies below `bound`; otherwise the cursor does not move.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn next_below(&mut self, bound: &R::Key) -> Result<Option<(R::Key, R::Value<'_>)>> {
        if !self.reach_record()? {
            return Ok(None);
        }
        match &mut self.leaf {
            Some(leaf) => Ok(match leaf.next_below(Some(bound))? {
                Below::Record(key, value) => Some((key, value)),
                Below::Met | Below::Above | Below::End => None,
            }),
            None => Ok(None),
        }
    }

    /// Calls `read` with the remaining records until it breaks. The cursor is then behind the last
    /// one passed to it. Faster than [`Self::next`] in a loop.
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

    /// The value of `key`, from any position; the cursor is then behind that key. Much cheaper than
    /// [`Tree::get`] for ascending keys that lie close together.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn find(&mut self, key: &R::Key) -> Result<Option<R::Value<'_>>> {
        let there = self.spans(key)? || self.is_beside(key)? && self.open_next()?;
        if !there {
            self.descend(Some(key))?;
        }
        match &mut self.leaf {
            Some(leaf) => leaf.find(key),
            None => Ok(None),
        }
    }

    /// Calls `read` for each of these ascending keys, with its value if it exists. Cheaper than
    /// [`Self::find`] for each of them.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn find_each(
        &mut self,
        keys: &[R::Key],
        mut read: impl FnMut(R::Key, Option<R::Value<'_>>),
    ) -> Result<()> {
        let mut rest = keys;
        while let Some((first, behind)) = rest.split_first() {
            read(*first, self.find(first)?);
            rest = behind;
            let mut passed = 0;
            self.each(|found, value| {
                while let Some((wanted, behind)) = rest.split_first()
                    && *wanted < found
                {
                    read(*wanted, None);
                    rest = behind;
                }
                match rest.split_first() {
                    None => return ControlFlow::Break(()),
                    Some((wanted, behind)) if *wanted == found => {
                        read(found, Some(value));
                        rest = behind;
                        passed = 0;
                    }
                    Some(_) => passed += 1,
                }
                // The next wanted key may be far away.
                match rest.is_empty() || passed > PASSED_MAX {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })?;
        }
        Ok(())
    }

    /// Does the open leaf hold `key` if any does?
    fn spans(&mut self, key: &R::Key) -> Result<bool> {
        if self.leaf.is_none() {
            return Ok(false);
        }
        let (begin, end) = match self.span {
            Some(span) => span,
            None => self.find_span()?,
        };
        self.span = Some((begin, end));
        Ok(begin.is_none_or(|begin| begin <= *key) && end.is_none_or(|end| *key < end))
    }

    /// The range of keys of the open leaf.
    fn find_span(&self) -> Result<Span<R::Key>> {
        let key = |step: &Step, index| child::<R>(&step.node, index).map(|(key, _)| key);
        let parent = self.path.last();
        let begin = parent.map(|step| key(step, step.next - 1)).transpose()?;
        let unfinished = |step: &&Step| step.next < step.node.count();
        let next = self.path.iter().rev().find(unfinished);
        Ok((begin, next.map(|step| key(step, step.next)).transpose()?))
    }

    /// Does the leaf behind the open one hold `key` if any does?
    fn is_beside(&self, key: &R::Key) -> Result<bool> {
        let Some(step) = self.path.last() else {
            return Ok(false);
        };
        if step.next + 1 >= step.node.count() {
            return Ok(false);
        }
        let (begin, _) = child::<R>(&step.node, step.next)?;
        let (end, _) = child::<R>(&step.node, step.next + 1)?;
        Ok(begin <= *key && *key < end)
    }

    /// Opens the leaf of the next record. `false` at the end.
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

    /// The cursor has passed this node.
    fn pass(&self, node: &Node) {
        if self.usage == Use::Once {
            self.tree.cache.pass(node);
        }
    }

    /// Opens the leaf behind the finished one. `false` at the end.
    fn open_next(&mut self) -> Result<bool> {
        self.span = None;
        let leaf = self.leaf.take();
        let last = leaf.as_ref().and_then(Run::last);
        if let Some(leaf) = leaf {
            self.pass(leaf.node());
        }
        let Some(root) = self.tree.root else {
            return Ok(false);
        };
        while let Some(step) = self.path.pop_if(|step| step.next == step.node.count()) {
            self.pass(&step.node);
        }
        if self.path.is_empty() {
            return Ok(false);
        }
        loop {
            let level = root.level.min(LEVEL_MAX) - self.path.len() as u8;
            let Some(step) = self.path.last_mut() else {
                return Ok(false);
            };
            let index = step.next;
            step.next += 1;
            let node = (self.tree.cache).load_child::<R>(self.usage, &step.node, index, level)?;
            if level == 0 {
                self.leaf = Some(Run::after(node, last));
                return Ok(true);
            }
            self.path.push(Step { node, next: 0 });
        }
    }
}
