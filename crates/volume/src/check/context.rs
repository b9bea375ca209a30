//! What the parts of a check share.

use super::block_set::BlockSet;
use super::finding::{Branch, Finding, Owner};
use super::meter::Meter;
use super::sink::Sink;
use crate::nodes::Nodes;
use crate::superblock::Superblock;
use crate::tree::{self, Inspect, NodeCache, Pointer, Record, Tree};

/// State that all parts of a check share.
pub(super) struct Context<'c> {
    pub(super) superblock: &'c Superblock,
    pub(super) cache: &'c NodeCache<Nodes>,
    pub(super) references: &'c BlockSet,
    pub(super) sink: &'c Sink,
    pub(super) meter: &'c Meter<'c>,
    pub(super) jobs: usize,
}

impl<'c> Context<'c> {
    pub(super) fn tree<R: Record>(&self, branch: Branch) -> Tree<'c, R, Nodes> {
        Tree::new(self.cache, branch.root(self.superblock))
    }

    /// Checks a tree; returns the states of its parts, in order of keys.
    pub(super) fn check<R: Record, S: Records<R>>(
        &self,
        branch: Branch,
        state: impl Fn() -> S + Sync,
    ) -> Vec<S> {
        let part = || Part {
            context: self,
            branch,
            state: state(),
        };
        let tree = self.tree::<R>(branch);
        let parts = tree.check(self.superblock.generation, self.jobs, part);
        parts.into_iter().map(|part| part.state).collect()
    }
}

/// The records of one part of a tree.
pub(super) trait Records<R: Record>: Send {
    fn record(&mut self, key: R::Key, value: R::Value<'_>);

    /// A node of the part is damaged.
    fn damaged(&mut self) {}
}

/// The visitor of one part of a tree: reports defects, and claims nodes.
struct Part<'p, S> {
    context: &'p Context<'p>,
    branch: Branch,
    state: S,
}

impl<R: Record, S: Records<R>> Inspect<R> for Part<'_, S> {
    fn finding(&mut self, finding: tree::Finding) {
        self.state.damaged();
        self.context.sink.put(Finding::Node {
            branch: self.branch,
            block: finding.node.block,
            level: finding.level,
            defect: finding.defect,
        });
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        let extent = node.span();
        let Context {
            references, sink, ..
        } = self.context;
        references.reference(extent, Owner::Node(self.branch), sink);
    }

    fn record(&mut self, key: R::Key, value: R::Value<'_>) {
        self.state.record(key, value);
    }
}
