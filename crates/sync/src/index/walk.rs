//! Walks over the tree: leaf by leaf in the order of keys, and pruning.
#![expect(unsafe_code, reason = "nodes are shared by the rules of epochs")]

use super::node::{self, BITS, LEVELS, Link, Node, SLOTS};
use super::radix::{Radix, Step, node_at};
use crate::epoch::Guard;
use crate::primitive::Ordering;

/// Where a search for the next leaf ended.
pub(super) enum Next<'g> {
    /// A leaf, and the key of its first slot.
    Leaf(u64, &'g Node),
    /// None so far; continue from this key.
    From(u64),
    /// None up to the last key.
    End,
}

/// Nodes without a successor that one search passes before it returns to its caller.
const PASSED_MAX: usize = 64;

impl Radix {
    /// The first leaf that has slots at `from` or after it.
    pub(super) fn next_leaf<'g>(&'g self, from: u64, guard: &'g Guard) -> Next<'g> {
        let mut key = from;
        for _ in 0..PASSED_MAX {
            match self.descend(key, guard) {
                Next::From(next) => key = next,
                found => return found,
            }
        }
        Next::From(key)
    }

    /// As `next_leaf`, but ends in the first node that has nothing at `key` or after it.
    pub(super) fn descend<'g>(&'g self, mut key: u64, guard: &'g Guard) -> Next<'g> {
        let mut level = node::root_level(key);
        let mut link = self.roots()[level].load(Ordering::Acquire);
        loop {
            // SAFETY: read just now from the roots or an inner node.
            let Some(node) = (unsafe { node_at(link, guard) }) else {
                return Self::behind(key, level);
            };
            if level == 0 {
                return Next::Leaf(node::leaf_of(key), node);
            }
            let first = node::position(key, level);
            let found = node.slots()[first..]
                .iter()
                .zip(first..)
                .find_map(|(slot, at)| {
                    // Acquire: nodes are built before they are published.
                    let link = slot.load(Ordering::Acquire);
                    (!node::target(link).is_null()).then_some((at, link))
                });
            let Some((at, next)) = found else {
                return Self::behind(key, level);
            };
            if at > first {
                key = (key >> node::shift(level) & !(SLOTS as u64 - 1) | at as u64)
                    << node::shift(level);
            }
            link = next;
            level -= 1;
        }
    }

    /// Where to continue after the node of `level` that covers `key`.
    fn behind<'g>(key: u64, level: usize) -> Next<'g> {
        let bits = node::shift(level) + BITS;
        match key
            .checked_shr(bits)
            .map(|prefix| (prefix + 1).checked_mul(1 << bits))
        {
            Some(Some(next)) => Next::From(next),
            _ => Next::End,
        }
    }

    /// Frees the leaf for `key` if it is empty, and the nodes above it that are then empty too.
    pub(super) fn prune(&self, key: u64, guard: &Guard) {
        let mut path: [Option<Step<'_>>; LEVELS] = [None; LEVELS];
        let mut level = node::root_level(key);
        let mut link: &Link = &self.roots()[level];
        // SAFETY: read just now from the roots or an inner node.
        while let Some(node) = unsafe { node_at(link.load(Ordering::Acquire), guard) } {
            path[level] = Some(Step { link, node });
            if level == 0 {
                break;
            }
            link = node.slot(key, level);
            level -= 1;
        }
        // From the leaf up; a missing step is a node that was freed already.
        for (level, step) in path.into_iter().enumerate() {
            match step {
                Some(step) if step.node.is_empty(key, level) => self.replace(step),
                Some(_) => break,
                None => {}
            }
        }
    }
}
