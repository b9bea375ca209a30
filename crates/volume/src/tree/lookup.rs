//! Finds one record.

use super::cache::{NodeCache, NodeSource, Use};
use super::error::{Defect, Error, Result};
use super::node::{Node, child};
use super::pointer::{LEVEL_MAX, Pointer, Root};
use super::record::Record;
use super::run::{Below, Run};
use std::marker::PhantomData;

/// Interior nodes that are read at once if all are needed.
const AT_ONCE: usize = 64;

/// A tree below one root, which never changes. Reading takes no lock but the cache's.
#[derive(Debug)]
pub struct Tree<'c, R, S> {
    pub(super) cache: &'c NodeCache<S>,
    pub(super) root: Option<Root>,
    record: PhantomData<R>,
}

impl<R, S> Clone for Tree<'_, R, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, S> Copy for Tree<'_, R, S> {}

impl<'c, R: Record, S: NodeSource> Tree<'c, R, S> {
    /// The tree below `root` (`None`: an empty one), read through `cache`.
    #[must_use]
    pub fn new(cache: &'c NodeCache<S>, root: Option<Root>) -> Self {
        Self {
            cache,
            root,
            record: PhantomData,
        }
    }

    /// Its root.
    #[must_use]
    pub fn root(&self) -> Option<Root> {
        self.root
    }

    /// Number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.root.map_or(0, |root| root.records)
    }

    /// Calls `read` with the value of `key`, if it is there.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn get<T>(&self, key: &R::Key, read: impl FnOnce(R::Value<'_>) -> T) -> Result<Option<T>> {
        hop!();
        let Some(leaf) = self.leaf_of(key, false)? else {
            return Ok(None);
        };
        let mut run = Run::<R>::new(leaf);
        run.seek(key)?;
        Ok(match run.next()? {
            Some((found, value)) if found == *key => Some(read(value)),
            _ => None,
        })
    }

    /// Calls `read` with the last record with a key below `bound`: the end of a prefix.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn last_below<T>(
        &self,
        bound: &R::Key,
        read: impl FnOnce(R::Key, R::Value<'_>) -> T,
    ) -> Result<Option<T>> {
        let Some(leaf) = self.leaf_of(bound, true)? else {
            return Ok(None);
        };
        let block = leaf.pointer().block;
        let damaged = || Error::corrupt(block, Defect::Record);
        let mut upto = leaf.runs_upto::<R>(bound).ok_or_else(damaged)?;
        if upto > 0 && leaf.run_key::<R>(upto - 1).ok_or_else(damaged)? == *bound {
            upto -= 1;
        }
        if upto == 0 {
            return Ok(None);
        }
        // The first pass counts, the second stops at the last: a record cannot be held while the
        // next is read.
        let mut run = Run::<R>::new(leaf);
        run.rewind(upto - 1);
        let mut below = 0_usize;
        while let Below::Record(..) = run.next_below(Some(bound))? {
            below += 1;
        }
        run.rewind(upto - 1);
        for _ in 1..below {
            run.next()?;
        }
        Ok(run.next()?.map(|(key, value)| read(key, value)))
    }

    /// The leaf that holds `key` if any does; with `before`, the one that holds the last key below
    /// it.
    fn leaf_of(&self, key: &R::Key, before: bool) -> Result<Option<Node>> {
        hop!();
        let Some(root) = self.root else {
            return Ok(None);
        };
        let mut level = root.level.min(LEVEL_MAX);
        let mut node = self.cache.load::<R>(root.node, level)?;
        while level > 0 {
            let block = node.pointer().block;
            let damaged = || Error::corrupt(block, Defect::Pointer);
            let mut upto = node.children_upto(key).ok_or_else(damaged)?;
            if before && upto > 0 && child::<R>(&node, upto - 1)?.0 == *key {
                upto -= 1;
            }
            if upto == 0 {
                return Ok(None);
            }
            level -= 1;
            node = (self.cache).load_child::<R>(Use::Reused, &node, upto - 1, level)?;
        }
        Ok(Some(node))
    }

    /// At most `parts - 1` ascending keys that cut the tree into about equal parts, for parallel
    /// readers. Reads no leaf.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn split_points(&self, parts: usize) -> Result<Vec<R::Key>> {
        /// Enough to even out parts of unequal weight.
        const CHILDREN_A_PART: usize = 8;
        let Some(root) = self.root.filter(|root| root.level > 0 && parts > 1) else {
            return Ok(Vec::new());
        };
        let mut level = root.level.min(LEVEL_MAX);
        let mut children = self.children_of(root.node, level)?;
        while level > 1 && children.len() < parts.saturating_mul(CHILDREN_A_PART) {
            level -= 1;
            let mut below = Vec::new();
            for (_, pointer) in children {
                below.extend(self.children_of(pointer, level)?);
            }
            children = below;
        }
        let parts = parts.min(children.len());
        let key = |part: usize| children[part * children.len() / parts].0;
        let mut keys: Vec<R::Key> = (1..parts).map(key).collect();
        keys.dedup();
        let block = root.node.block;
        let sorted = keys.is_sorted();
        if sorted {
            Ok(keys)
        } else {
            Err(Error::corrupt(block, Defect::Order))
        }
    }

    /// The number of nodes. Reads interior ones only.
    ///
    /// # Errors
    /// When a node cannot be read or is damaged.
    pub fn nodes(&self) -> Result<u64> {
        let Some(root) = self.root else {
            return Ok(0);
        };
        let mut row = vec![root.node];
        let mut nodes = 1;
        for level in (1..=root.level.min(LEVEL_MAX)).rev() {
            let mut below = Vec::new();
            for some in row.chunks(AT_ONCE) {
                self.cache.prefetch::<R>(Use::Reused, some, level);
                for pointer in some {
                    if level == 1 {
                        nodes += self.cache.load::<R>(*pointer, level)?.count() as u64;
                    } else {
                        let children = self.children_of(*pointer, level)?.into_iter();
                        below.extend(children.map(|(_, pointer)| pointer));
                    }
                }
            }
            nodes += below.len() as u64;
            row = below;
        }
        Ok(nodes)
    }

    fn children_of(&self, pointer: Pointer, level: u8) -> Result<Vec<(R::Key, Pointer)>> {
        let node = self.cache.load::<R>(pointer, level)?;
        (0..node.count())
            .map(|index| child::<R>(&node, index))
            .collect()
    }
}
