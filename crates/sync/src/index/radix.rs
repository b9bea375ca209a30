//! The tree from keys to objects: 64-way, without locks.
//!
//! Keys of up to 6 bits have a root of their own, keys of up to 12 bits another, and so on. So
//! small keys stay shallow beside huge ones, and no root ever has to grow.
//!
//! A slot goes from null to a pointer and back, by compare-exchange. A node leaves the tree in two
//! steps, which any thread can finish for another. First all its slots are *frozen*, each with its
//! content. Then the slot that leads to the node gets null, or a new node with the same content if
//! there was any.
//!
//! *Invariants.*
//! - A slot that is not frozen belongs to a node in the tree, so an exchange that succeeds there
//!   takes effect. A frozen slot never changes.
//! - The content of a frozen node is in the node that replaced it. A reader in a replaced node sees
//!   the tree as it was at some moment since the reader's pin.
//! - Objects and nodes are aligned to 64 bytes.
#![expect(unsafe_code, reason = "nodes are shared by the rules of epochs")]

use super::node::{self, LEVELS, Link, Node};
use crate::counter::ShardedCounter;
use crate::epoch::{self, Guard};
use crate::primitive::Ordering;
use std::ptr;

/// The tree. It knows objects as pointers only, and does not own them.
pub(super) struct Radix {
    // By level of the root. Written when a root is made or removed.
    roots: [Link; LEVELS],
    /// Nodes in the tree.
    pub(super) nodes: ShardedCounter,
}

/// One step of a walk: a node, and the slot that led to it.
#[derive(Clone, Copy)]
pub(super) struct Step<'g> {
    pub(super) link: &'g Link,
    pub(super) node: &'g Node,
}

/// The result of inserting an object into a leaf.
pub(super) enum Inserted {
    /// It is inserted.
    Done,
    /// This one was there already.
    Taken(*mut ()),
    /// The leaf was replaced: look again from the root.
    Replaced,
}

/// Makes a reference to the node that `link` leads to.
///
/// # Safety
/// `link` is null or was read from the slot of an inner node, or of the roots, under the guard.
#[inline]
pub(super) unsafe fn node_at(link: *mut (), _guard: &Guard) -> Option<&Node> {
    // SAFETY: nodes come from boxes and are retired when they leave the tree, so one found under
    // the guard lives as long as the guard.
    unsafe { node::usual_target(link).cast::<Node>().as_ref() }
}

unsafe fn free_node(node: *mut ()) {
    // SAFETY: `Radix` retires nodes only, each once, and made each from a box.
    drop(unsafe { Box::from_raw(node.cast::<Node>()) });
}

impl Radix {
    pub(super) fn new() -> Self {
        Self {
            roots: std::array::from_fn(|_| Link::new(ptr::null_mut())),
            nodes: ShardedCounter::new(),
        }
    }

    /// Bytes of the nodes. A sum over cores.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.nodes.sum()).unwrap_or(0) * size_of::<Node>() as u64
    }

    pub(super) fn roots(&self) -> &[Link; LEVELS] {
        &self.roots
    }

    /// The leaf slot for `key`, if there is one.
    #[inline]
    fn find<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<&'g Link> {
        let mut level = node::root_level(key);
        let mut link = &self.roots[level];
        loop {
            // Acquire: nodes are built before they are published.
            let next = link.load(Ordering::Acquire);
            // SAFETY: read just now from the roots or an inner node.
            let node = unsafe { node_at(next, guard) }?;
            link = node.slot(key, level);
            if level == 0 {
                return Some(link);
            }
            level -= 1;
        }
    }

    /// The object at `key`, or null.
    #[inline]
    pub(super) fn get(&self, key: u64, guard: &Guard) -> *mut () {
        self.find(key, guard).map_or(ptr::null_mut(), |slot| {
            // Acquire: objects are built before they are published.
            node::usual_target(slot.load(Ordering::Acquire))
        })
    }

    /// Inserts `object` at `key`, making the nodes that are missing.
    ///
    /// # Errors
    /// The object that is there already.
    pub(super) fn insert(&self, key: u64, object: *mut (), guard: &Guard) -> Result<(), *mut ()> {
        loop {
            let leaf = self.leaf(key, guard);
            match self.insert_in(leaf, key, object) {
                Inserted::Done => return Ok(()),
                Inserted::Taken(now) => return Err(now),
                Inserted::Replaced => {}
            }
        }
    }

    /// The leaf for `key`, made if it is missing.
    pub(super) fn leaf<'g>(&'g self, key: u64, guard: &'g Guard) -> Step<'g> {
        loop {
            if let Some(leaf) = self.leaf_for_insert(key, guard) {
                return leaf;
            }
        }
    }

    /// As [`insert`](Self::insert), in a leaf for `key` that was found under a guard that still
    /// lives.
    #[inline]
    pub(super) fn insert_in(&self, leaf: Step<'_>, key: u64, object: *mut ()) -> Inserted {
        // Release: the object is built before it is visible. Acquire: so is the one in its place.
        match leaf.node.slot(key, 0).compare_exchange(
            ptr::null_mut(),
            object,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Inserted::Done,
            Err(now) if node::is_frozen(now) => {
                self.replace(leaf);
                Inserted::Replaced
            }
            Err(now) => Inserted::Taken(now),
        }
    }

    /// The leaf for `key`, made if it is missing; `None` if a node on the path was replaced.
    fn leaf_for_insert<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<Step<'g>> {
        let mut level = node::root_level(key);
        let mut link = &self.roots[level];
        let mut above: Option<Step<'g>> = None;
        loop {
            let mut next = link.load(Ordering::Acquire);
            if next.is_null() {
                next = self.grow(link);
            }
            if node::is_frozen(next) {
                // Roots are never frozen, so there is a node above.
                self.replace(above?);
                return None;
            }
            // SAFETY: read just now from the roots or an inner node.
            let node = unsafe { node_at(next, guard) }?;
            if level == 0 {
                return Some(Step { link, node });
            }
            above = Some(Step { link, node });
            link = node.slot(key, level);
            level -= 1;
        }
    }

    /// Puts an empty node into an empty slot; returns the slot's content after that.
    #[cold]
    fn grow(&self, link: &Link) -> *mut () {
        let node = Box::into_raw(Node::empty());
        match link.compare_exchange(
            ptr::null_mut(),
            node.cast(),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => {
                self.nodes.add(1);
                node.cast()
            }
            Err(now) => {
                // SAFETY: made above and never published.
                drop(unsafe { Box::from_raw(node) });
                now
            }
        }
    }

    /// Takes `object` out of its leaf, and returns the leaf; `None` if it is not at `key`.
    pub(super) fn remove<'g>(
        &'g self,
        key: u64,
        object: *mut (),
        guard: &'g Guard,
    ) -> Option<&'g Node> {
        loop {
            let mut level = node::root_level(key);
            let mut link = &self.roots[level];
            let mut above: Option<Step<'_>> = None;
            let leaf = loop {
                let next = link.load(Ordering::Acquire);
                if let (true, Some(above)) = (node::is_frozen(next), above) {
                    self.replace(above);
                    break None;
                }
                // SAFETY: read just now from the roots or an inner node.
                let node = (unsafe { node_at(next, guard) })?;
                let step = Step { link, node };
                if level == 0 {
                    break Some(step);
                }
                above = Some(step);
                link = node.slot(key, level);
                level -= 1;
            };
            let Some(leaf) = leaf else { continue };
            // Release: a thread that finds the slot empty sees what came before.
            match leaf.node.slot(key, 0).compare_exchange(
                object,
                ptr::null_mut(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(leaf.node),
                Err(now) if node::is_frozen(now) => self.replace(leaf),
                Err(_) => return None,
            }
        }
    }

    /// Takes a node out of the tree, or replaces it by an equal one if it is not empty. Its slots
    /// are frozen after that, so the caller looks again from the root.
    #[cold]
    pub(super) fn replace(&self, step: Step<'_>) {
        let content = step.node.freeze();
        let old = ptr::from_ref(step.node).cast_mut().cast::<()>();
        let new = if content.iter().all(|link| link.is_null()) {
            ptr::null_mut()
        } else {
            Box::into_raw(Node::with(|slot| content[slot])).cast::<()>()
        };
        // Release: the new node is built. The exchange fails if another thread has finished this
        // already, or if the slot is frozen itself; the next look from the root meets that first.
        match step
            .link
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(old) => {
                if new.is_null() {
                    self.nodes.add(-1);
                }
                // SAFETY: this exchange took it out of the tree, and it came from a box. Dropping a
                // node does not drop what it points to.
                unsafe { epoch::retire_with(old, free_node) };
            }
            Err(_) if new.is_null() => {}
            // SAFETY: made above and never published.
            Err(_) => drop(unsafe { Box::from_raw(new.cast::<Node>()) }),
        }
    }
}
