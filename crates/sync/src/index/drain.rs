//! Dropping an index: all its objects are dropped, by as many threads as help.
//!
//! *Locking.* A lock for each few thousand objects, a leaf.
#![expect(
    unsafe_code,
    reason = "the tree holds nodes and objects as plain pointers"
)]

use super::held::Held;
use super::node::{self, Link, Node};
use super::radix::Radix;
use crate::parallel;
use crate::primitive::Ordering;
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::ptr;

/// Objects that are worth another thread: some milliseconds of work.
const WORTH_A_THREAD: u64 = 1 << 16;

/// A node that was taken out of the tree, with everything below it.
struct Branch {
    node: Box<Node>,
    level: usize,
}

/// What an index held: its objects, to be dropped by all threads that [help](Self::help). Dropping
/// it drops the rest.
pub struct Remains<T: Send + Sync + 'static> {
    /// The first one last.
    branches: Mutex<Vec<Branch>>,
    owns: PhantomData<Held<T>>,
}

impl Radix {
    /// Takes out every node that is a leaf or has only leaves below it; the first one last.
    fn take_branches(&mut self) -> Vec<Branch> {
        let mut branches = Vec::new();
        for (level, root) in self.roots().iter().enumerate() {
            // SAFETY: `&mut self` excludes other threads, and the roots are cleared with it.
            if let Some(node) = unsafe { take(root) } {
                split(Branch { node, level }, &mut branches);
            }
        }
        let nodes = self.nodes.sum();
        self.nodes.add(-nodes);
        branches.reverse();
        branches
    }
}

/// Takes out the target of a slot.
///
/// # Safety
/// `link` leads to null or to a node, and no other thread follows it, now or later.
unsafe fn take(link: &Link) -> Option<Box<Node>> {
    let node = node::target(link.swap(ptr::null_mut(), Ordering::Acquire)).cast::<Node>();
    // SAFETY: nodes come from boxes, and this one was just taken out of its only slot.
    (!node.is_null()).then(|| unsafe { Box::from_raw(node) })
}

/// Divides a branch into branches of one leaf, or of one node and its leaves.
fn split(branch: Branch, branches: &mut Vec<Branch>) {
    if branch.level <= 1 {
        branches.push(branch);
        return;
    }
    for slot in branch.node.slots() {
        // SAFETY: this thread owns the node and everything below it.
        if let Some(node) = unsafe { take(slot) } {
            let level = branch.level - 1;
            split(Branch { node, level }, branches);
        }
    }
}

impl<T: Send + Sync + 'static> Remains<T> {
    /// All that is in the tree.
    ///
    /// # Safety
    /// It holds objects of this type, and no guard is left under which one was found.
    pub(super) unsafe fn of(tree: &mut Radix) -> Self {
        Self {
            branches: Mutex::new(tree.take_branches()),
            owns: PhantomData,
        }
    }

    /// Drops objects until no branch is left that another helper has not taken, and returns their
    /// number. When all helpers have returned, none is left.
    pub fn help(&self) -> u64 {
        let next = || self.branches.lock().pop();
        let mut dropped = 0;
        while let Some(Branch { node, level }) = next() {
            if level == 0 {
                dropped += Self::drain(&node);
                continue;
            }
            for slot in node.slots() {
                // SAFETY: this thread owns the node and everything below it.
                dropped += unsafe { take(slot) }.map_or(0, |leaf| Self::drain(&leaf));
            }
        }
        dropped
    }

    /// Drops all, about `objects`, on several threads if that are many.
    pub(super) fn end(self, objects: u64) {
        let threads = usize::try_from(objects / WORTH_A_THREAD).unwrap_or(usize::MAX);
        parallel::together(threads, || {
            self.help();
        });
    }

    fn drain(leaf: &Node) -> u64 {
        let mut dropped = 0;
        for object in leaf.slots().iter().filter_map(node::object) {
            // SAFETY: it was in the tree until now, and no guard is left under which it was found,
            // by the contract of `of`.
            unsafe { Held::<T>::detach(object.cast()) };
            dropped += 1;
        }
        dropped
    }
}

impl<T: Send + Sync + 'static> Drop for Remains<T> {
    fn drop(&mut self) {
        self.help();
    }
}
