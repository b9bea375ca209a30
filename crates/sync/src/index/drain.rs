//! The end of an index: everything it holds is let go, by several threads if that is much.
#![expect(
    unsafe_code,
    reason = "the tree holds nodes and objects as plain pointers"
)]

use super::node::{self, Link, Node, SLOTS};
use super::radix::Radix;
use crate::crew;
use crate::prefetch::prefetch;
use crate::primitive::Ordering;
use std::ptr;

/// Objects that are worth a thread: some milliseconds of work.
const WORTH_A_THREAD: u64 = 1 << 16;
/// Objects that are fetched ahead of the one that is let go.
const AHEAD: usize = 8;
const LINE: usize = 64;

/// A node that was taken out of the tree, with all below it.
struct Branch {
    node: Box<Node>,
    level: usize,
}

impl Radix {
    /// Takes every node and object out, frees the nodes, and calls `end` with each object; on several
    /// threads if there are many, of which `objects` tells about the number.
    pub(super) fn drain(&mut self, objects: u64, end: impl Fn(*mut ()) + Sync) {
        let mut branches = Vec::new();
        for (level, root) in self.roots().iter().enumerate() {
            // SAFETY: `&mut self`: nobody else is in the tree, and the roots are cleared with it.
            if let Some(node) = unsafe { take(root) } {
                split(Branch { node, level }, &mut branches);
            }
        }
        let threads = usize::try_from(objects / WORTH_A_THREAD).unwrap_or(usize::MAX);
        crew::divide(branches, threads, |branch| branch.drain(&end));
    }
}

/// Takes out what a slot leads to.
///
/// # Safety
/// `link` leads to null or to a node, and nobody else follows it or ever will.
unsafe fn take(link: &Link) -> Option<Box<Node>> {
    let node = node::target(link.swap(ptr::null_mut(), Ordering::Acquire)).cast::<Node>();
    // SAFETY: nodes come from boxes, and this one was taken out of its only slot just now.
    (!node.is_null()).then(|| unsafe { Box::from_raw(node) })
}

/// Divides a branch into those that are one node and its leaves, at most.
fn split(branch: Branch, branches: &mut Vec<Branch>) {
    if branch.level <= 1 {
        branches.push(branch);
        return;
    }
    for slot in branch.node.slots() {
        // SAFETY: the node is exclusively ours, and so are those below it.
        if let Some(node) = unsafe { take(slot) } {
            let level = branch.level - 1;
            split(Branch { node, level }, branches);
        }
    }
}

impl Branch {
    fn drain(self, end: &impl Fn(*mut ())) {
        if self.level == 0 {
            return drain_leaf(&self.node, end);
        }
        for slot in self.node.slots() {
            // SAFETY: the node is exclusively ours, and so are those below it.
            if let Some(node) = unsafe { take(slot) } {
                let level = self.level - 1;
                Self { node, level }.drain(end);
            }
        }
    }
}

fn drain_leaf(leaf: &Node, end: &impl Fn(*mut ())) {
    let mut objects = [ptr::null_mut::<()>(); SLOTS];
    let mut found = 0;
    for slot in leaf.slots() {
        // Acquire: objects are built before they are published.
        let object = node::target(slot.load(Ordering::Acquire));
        if !object.is_null() {
            objects[found] = object;
            found += 1;
        }
    }
    let objects = &objects[..found];
    let fetch = |object: &*mut ()| {
        prefetch(*object);
        prefetch(object.cast::<u8>().wrapping_add(LINE));
    };
    objects.iter().take(AHEAD).for_each(fetch);
    for (at, object) in objects.iter().enumerate() {
        objects.get(at + AHEAD).into_iter().for_each(fetch);
        end(*object);
    }
}
