//! The end of an index: everything it holds is let go, by whoever helps.
//!
//! An allocator takes a block back fastest from the thread that it gave it to. So whoever helps lets go of those
//! objects first that he made himself, as far as one of each few thousand tells, and of those of others when nothing else
//! is left. He takes them apart in pieces, of which others take some when they are done.
//!
//! *Locking.* A lock for each few thousand objects, and one of each helper for each few hundred; both are leaves.
#![expect(
    unsafe_code,
    reason = "the tree holds nodes and objects as plain pointers"
)]

use super::Held;
use super::node::{self, LINE, Link, Node, SLOTS};
use super::radix::Radix;
use crate::crew;
use crate::prefetch::prefetch;
use crate::primitive::Ordering;
use crate::thread_slot::thread_slot;
use parking_lot::Mutex;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Objects that are worth a thread: some milliseconds of work.
const WORTH_A_THREAD: u64 = 1 << 16;
/// Objects that are fetched ahead of the one that is let go.
const AHEAD: usize = 8;
/// Bytes of a line of the processor's.
const LINE_BYTES: usize = 64;

/// A node that was taken out of the tree, with all below it.
struct Branch {
    node: Box<Node>,
    level: usize,
}

/// Some neighbouring leaves that were taken out of the tree.
type Part = Vec<Box<Node>>;

/// What an index held: its objects, to be let go by all threads that [help](Self::help). Dropping it lets go
/// of the rest.
pub struct Remains<T: Send + Sync + 'static> {
    left: Mutex<Left>,
    owns: PhantomData<Held<T>>,
}

#[derive(Default)]
struct Left {
    /// The first one last.
    branches: Vec<Branch>,
    /// Those that somebody has looked at, by the slot of the thread that had better do them, whether it comes or not.
    dealt: Vec<(usize, Vec<Branch>)>,
    /// Of all who came to help.
    helpers: Vec<Arc<Helper>>,
}

/// What a thread that helps has taken apart.
#[derive(Default)]
struct Helper {
    parts: Mutex<Vec<Part>>,
}

impl Radix {
    /// Takes every node out that has nothing but leaves below it, or is one; the first one last.
    fn take_apart(&mut self) -> Vec<Branch> {
        let mut branches = Vec::new();
        for (level, root) in self.roots().iter().enumerate() {
            // SAFETY: `&mut self`: nobody else is in the tree, and the roots are cleared with it.
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
    /// Its leaves, as many together as have their links on one line: a thread takes the numbers of such for itself.
    fn parts(self) -> Vec<Part> {
        if self.level == 0 {
            return vec![vec![self.node]];
        }
        let leaves = |slots: &[Link]| {
            // SAFETY: the node is exclusively ours, and so are those below it.
            let leaves = slots.iter().filter_map(|slot| unsafe { take(slot) });
            leaves.collect::<Part>()
        };
        self.node.slots().chunks(LINE).map(leaves).collect()
    }
}

impl<T: Send + Sync + 'static> Remains<T> {
    /// What is in the tree.
    ///
    /// # Safety
    /// It holds objects of this type, and nobody is left who has met one under a guard.
    pub(super) unsafe fn of(tree: &mut Radix) -> Self {
        Self {
            left: Mutex::new(Left {
                branches: tree.take_apart(),
                dealt: Vec::new(),
                helpers: Vec::new(),
            }),
            owns: PhantomData,
        }
    }

    /// Lets go of objects as long as there are any that nobody else is at; gives how many it were. When all who help
    /// have come back there are none.
    pub fn help(&self) -> u64 {
        let (own, helper) = (thread_slot(), Arc::new(Helper::default()));
        self.left.lock().helpers.push(Arc::clone(&helper));
        let mut ended = 0;
        loop {
            if let Some(part) = helper.take() {
                ended += self.drain(&part);
                continue;
            }
            let branch = self.left.lock().next(own);
            match branch {
                Some((branch, true)) => helper.add(branch.parts()),
                Some((branch, false)) => match self.maker(&branch) {
                    Some(other) if other != own => self.left.lock().deal(other, branch),
                    _ => helper.add(branch.parts()),
                },
                None => match self.steal() {
                    Some(part) => ended += self.drain(&part),
                    None => return ended,
                },
            }
        }
    }

    /// Takes a part that another one who helps, or has helped, has not come to.
    fn steal(&self) -> Option<Part> {
        let helpers = self.left.lock().helpers.clone();
        helpers.iter().find_map(|helper| helper.take())
    }

    /// Lets all go, `objects` or so, with the help of other threads if that are many.
    pub(super) fn end(self, objects: u64) {
        let threads = usize::try_from(objects / WORTH_A_THREAD).unwrap_or(usize::MAX);
        crew::together(threads, || {
            self.help();
        });
    }

    /// Who has used the first object of a branch last: most likely he has made it, and its neighbours.
    fn maker(&self, branch: &Branch) -> Option<usize> {
        let leaf = match branch.level {
            0 => &*branch.node,
            _ => {
                let leaf = branch.node.slots().iter().find_map(target)?;
                // SAFETY: the node is exclusively ours, and so are those below it, which nobody frees meanwhile.
                unsafe { leaf.cast::<Node>().as_ref() }
            }
        };
        let first = leaf.slots().iter().find_map(target)?;
        // SAFETY: it was in the tree, hence is there until it is detached, which only we do.
        unsafe { Held::<T>::user_of(first.cast()) }
    }

    fn drain(&self, part: &Part) -> u64 {
        part.iter().map(|leaf| self.drain_leaf(leaf)).sum()
    }

    fn drain_leaf(&self, leaf: &Node) -> u64 {
        let mut objects = [ptr::null_mut::<()>(); SLOTS];
        let mut found = 0;
        for object in leaf.slots().iter().filter_map(target) {
            objects[found] = object.as_ptr();
            found += 1;
        }
        let objects = &objects[..found];
        let fetch = |object: &*mut ()| {
            prefetch(*object);
            prefetch(object.cast::<u8>().wrapping_add(LINE_BYTES));
        };
        objects.iter().take(AHEAD).for_each(fetch);
        for (at, object) in objects.iter().enumerate() {
            objects.get(at + AHEAD).into_iter().for_each(fetch);
            if let Some(held) = NonNull::new(object.cast::<Held<T>>()) {
                // SAFETY: it was in the tree until now, and no guard is left under which it was
                // met, as whoever made this has promised.
                unsafe { Held::detach(held) };
            }
        }
        found as u64
    }
}

/// What a slot leads to.
fn target(slot: &Link) -> Option<NonNull<()>> {
    // Acquire: nodes and objects are built before they are published.
    NonNull::new(node::target(slot.load(Ordering::Acquire)))
}

impl Helper {
    fn take(&self) -> Option<Part> {
        self.parts.lock().pop()
    }

    fn add(&self, parts: Vec<Part>) {
        self.parts.lock().extend(parts);
    }
}

impl Left {
    /// A branch for this thread, if there is one; has anybody looked at it?
    fn next(&mut self, own: usize) -> Option<(Branch, bool)> {
        let mut dealt = self.dealt.iter_mut();
        let own = dealt.find(|(slot, _)| *slot == own);
        if let Some(branch) = own.and_then(|(_, branches)| branches.pop()) {
            return Some((branch, true));
        }
        if let Some(branch) = self.branches.pop() {
            return Some((branch, false));
        }
        let of_others = self.dealt.iter_mut();
        let branch = of_others.flat_map(|(_, branches)| branches.pop()).next();
        branch.map(|branch| (branch, true))
    }

    /// Gives a branch to a thread.
    fn deal(&mut self, to: usize, branch: Branch) {
        match self.dealt.iter_mut().find(|(slot, _)| *slot == to) {
            Some((_, branches)) => branches.push(branch),
            None => self.dealt.push((to, vec![branch])),
        }
    }

    fn is_empty(&self) -> bool {
        let taken_apart = |helper: &Arc<Helper>| helper.parts.lock().is_empty();
        self.branches.is_empty()
            && self.dealt.iter().all(|(_, branches)| branches.is_empty())
            && self.helpers.iter().all(taken_apart)
    }
}

impl<T: Send + Sync + 'static> Drop for Remains<T> {
    fn drop(&mut self) {
        if !self.left.get_mut().is_empty() {
            self.help();
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Remains<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remains").finish_non_exhaustive()
    }
}
