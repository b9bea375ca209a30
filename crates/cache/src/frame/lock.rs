use super::FRAME_END;
use super::aging::Arrival;
use super::fresh::Frame;
use super::map::{Frames, Totals};
use super::node::{Counts, Node};
use super::recycle::HandOver;
use super::slot::{Entry, Owned, Slot, Stored, Writing};
use crate::epoch::{self, Guard};
use crate::frame_primitive::{MutexGuard, Ordering, Own as _, fence};
use std::fmt;

/// The one writer of a [`Frames`], until it is dropped.
///
/// What is borrowed from it stays; what it changes becomes visible at once, unless
/// [`begin`](Self::begin) was called.
pub struct FramesLock<'a, X: Send + 'static> {
    pub(super) map: &'a Frames<X>,
    pub(super) writing: Writing,
    /// The version is odd.
    begun: bool,
    /// What the owner has said to be inside.
    inside: Option<u64>,
    /// When frames come, and for what.
    pub(super) stamp: Option<(u8, Arrival)>,
    _lock: MutexGuard<'a, ()>,
    // Dropped last.
    _hand_over: HandOver,
}

impl<'a, X: Send + 'static> FramesLock<'a, X> {
    #[inline]
    #[expect(unsafe_code, reason = "here the lock is held")]
    pub(super) fn new(map: &'a Frames<X>, lock: MutexGuard<'a, ()>) -> Self {
        Self {
            map,
            // SAFETY: this map's lock is held until the value is dropped, the token never leaves
            // it, and the token is used for the slots of this map below.
            writing: unsafe { Writing::new() },
            begun: false,
            inside: None,
            stamp: None,
            _lock: lock,
            _hand_over: HandOver,
        }
    }

    /// From now until the lock is dropped, readers see neither what there was nor what comes of
    /// it: they must wait for the lock. For changes that are one only together, those to other
    /// things that are read with a snapshot included.
    pub fn begin(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        let version = self.map.version.own().wrapping_add(1);
        self.map.version.store(version, Ordering::Relaxed);
        if let Some(Entry::Node(root)) = self.map.root.load(&self.writing) {
            root.gate.close(&self.writing);
        }
        // Who sees anything that comes now sees the odd version: pairs with the fence in
        // `Snapshot::holds`.
        fence(Ordering::Release);
    }

    /// Says that the first `frames` frames are *inside*, whether they are there or not: nobody who
    /// reads one of them needs to ask the owner how far he may read. It is for the owner to say when
    /// he has made it so, and lasts until the next [`begin`](Self::begin): before it becomes untrue he
    /// begins.
    ///
    /// # Panics
    /// If fewer are inside than before and it was not begun (with debug assertions).
    pub fn inside(&mut self, frames: u64) {
        debug_assert!(
            self.begun
                || match self.map.root.load(&self.writing) {
                    Some(Entry::Node(root)) => root.gate.inside(&self.writing) <= frames,
                    _ => true,
                },
            "what is inside shrank without a beginning"
        );
        self.inside = Some(frames);
    }

    /// Ends a change of one store: whoever sees the next one sees that there was this one.
    pub(super) fn shown(&self) {
        if !self.begun {
            let version = self.map.version.own().wrapping_add(2);
            self.map.version.store(version, Ordering::Release);
            // For what the owner stores after this, relaxed or not (the size of a file).
            fence(Ordering::Release);
        }
    }

    /// What is held.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.map.totals_kept(&self.writing)
    }

    /// Nothing there, neither frames nor a side part?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The frame `number`, mended if it was broken.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<Stored<'_>> {
        let found = self.map.find(number, &self.writing)?;
        if !found.is_broken() {
            return Some(found);
        }
        self.slot_there(number)?.mend(&self.writing);
        self.map.find(number, &self.writing)
    }

    /// The frame `number` as it is, gaps and all: to be shared.
    #[must_use]
    pub fn show(&self, number: u64) -> Option<Stored<'_>> {
        self.map.find(number, &self.writing)
    }

    /// Is there no frame but possibly number 0, and no side part?
    #[must_use]
    pub fn is_small(&self) -> bool {
        !matches!(self.map.root.load(&self.writing), Some(Entry::Node(_)))
    }

    /// Makes `frame` frame `number`, in one step for readers.
    ///
    /// # Panics
    /// From [`FRAME_END`] on.
    pub fn put(&mut self, number: u64, frame: Frame) {
        assert!(number < FRAME_END, "frame {number} is out of range");
        if number == 0 && self.is_small() {
            let frame = Some(Owned::frame(frame));
            self.map.root.replace(frame, &self.writing);
        } else {
            self.put_in_leaf(number, frame);
        }
        self.shown();
    }

    fn put_in_leaf(&mut self, number: u64, frame: Frame) {
        let mut change = Counts::frame(frame.capacity());
        if let Some(leaf) = self.leaf_there(number)
            && let Some(Entry::Frame(old)) = leaf.slots[leaf.place(number)].load(&self.writing)
        {
            change += -Counts::frame(old.capacity());
            leaf.put(leaf.place(number), Owned::frame(frame), &self.writing);
            self.put_there(leaf, leaf.place(number), false);
            if change.bytes != 0 {
                self.count_path(number, 0, change, &epoch::pin());
            }
            return;
        }
        let guard = epoch::pin();
        let leaf = self.leaf(number, &guard);
        leaf.put(leaf.place(number), Owned::frame(frame), &self.writing);
        self.put_there(leaf, leaf.place(number), true);
        self.count_path(number, 0, change, &guard);
    }

    /// Fills more of frame `number` without copying it: `data` at `at`, in one step for readers; before it are
    /// zeros, if they have to be filled in, or a gap that may be filled later. Not if there is no such frame, or
    /// no room in it, or if something is filled there already.
    #[must_use]
    pub fn extend(&mut self, number: u64, at: usize, data: &[u8]) -> bool {
        let slot = self.slot_there(number);
        let extended = slot.is_some_and(|slot| slot.extend(at, data, &self.writing));
        if extended {
            self.shown();
        }
        extended
    }

    /// The place of frame `number`, if there is one.
    fn slot_there(&self, number: u64) -> Option<&Slot<X>> {
        if self.is_small() {
            return (number == 0).then_some(&self.map.root);
        }
        let leaf = self.leaf_there(number)?;
        Some(&leaf.slots[leaf.place(number)])
    }

    /// The leaf that has a place for `number`, if it is there.
    pub(super) fn leaf_there(&self, number: u64) -> Option<&Node<X>> {
        let mut slot = &self.map.root;
        loop {
            match slot.load(&self.writing)? {
                Entry::Node(node) if !node.spans(number) => return None,
                Entry::Node(node) if node.shift == 0 => return Some(node),
                Entry::Node(node) => slot = &node.slots[node.place(number)],
                Entry::Frame(_) => return None,
            }
        }
    }

    /// Adds to the counts of all nodes on the way to `number` whose shift is `above` or more.
    pub(super) fn count_path(&self, number: u64, above: u32, change: Counts, guard: &Guard) {
        let mut slot = &self.map.root;
        while let Some(Entry::Node(node)) = slot.load(guard) {
            if node.shift < above {
                return;
            }
            let nodes = if node.shift > 0 { change.nodes } else { 0 };
            node.count(Counts { nodes, ..change }, &self.writing);
            slot = &node.slots[node.place(number)];
        }
    }

    /// The leaf that has a place for `number`; the way to it is made if it is not there.
    pub(super) fn leaf<'g>(&mut self, number: u64, guard: &'g Guard) -> &'g Node<X>
    where
        'a: 'g,
    {
        let map: &'g Frames<X> = self.map;
        let mut parent: Option<&'g Node<X>> = None;
        let mut slot = &map.root;
        loop {
            match slot.load(guard) {
                None => {
                    slot.replace(Some(Owned::node(Node::leaf(number))), &self.writing);
                    if let Some(parent) = parent {
                        parent.mark(parent.place(number), true, &self.writing);
                        self.count_path(number, parent.shift, Counts::NODE, guard);
                    }
                }
                Some(Entry::Frame(frame)) => self.root_to_leaf(frame),
                Some(Entry::Node(node)) if !node.spans(number) => {
                    let at_root = parent.is_none();
                    self.make_room(slot, node, number, at_root, guard);
                }
                Some(Entry::Node(node)) if node.shift == 0 => return node,
                Some(Entry::Node(node)) => {
                    slot = &node.slots[node.place(number)];
                    parent = Some(node);
                }
            }
        }
    }

    /// Puts into `slot`, in place of `node`, a node which has a place for `number` as well.
    fn make_room(
        &mut self,
        slot: &Slot<X>,
        node: &Node<X>,
        number: u64,
        at_root: bool,
        guard: &Guard,
    ) {
        // Only a root is ever empty: one that is there for the side part.
        let is_empty = node.used() == 0;
        let new = if is_empty {
            Node::leaf(number)
        } else {
            Node::around(node, number)
        };
        if at_root {
            self.move_side(node, &new);
        }
        if is_empty {
            slot.replace(Some(Owned::node(new)), &self.writing);
        } else {
            let (at, shift) = (new.place(node.base), new.shift);
            slot.enclose(new, at, &self.writing);
            self.count_path(number, shift + 1, Counts::NODE, guard);
        }
        if at_root {
            node.gate.close(&self.writing);
        }
    }

    /// Turns a root that is a frame into a leaf with that frame.
    fn root_to_leaf(&self, frame: Stored<'_>) {
        let leaf = Node::leaf(0);
        leaf.count(Counts::frame(frame.capacity()), &self.writing);
        leaf.mark(0, true, &self.writing);
        self.map.root.enclose(leaf, 0, &self.writing);
    }
}

impl<X: Send + 'static> Drop for FramesLock<'_, X> {
    #[inline]
    fn drop(&mut self) {
        if self.begun {
            let version = self.map.version.own().wrapping_add(1);
            // Release: who sees the even version sees all that was changed, the owner's too.
            self.map.version.store(version, Ordering::Release);
        }
        if let Some(inside) = self.inside
            && let Some(Entry::Node(root)) = self.map.root.load(&self.writing)
        {
            root.gate.open(inside, &self.writing);
        }
    }
}

impl<X: Send + 'static> fmt::Debug for FramesLock<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramesLock")
            .field("totals", &self.totals())
            .field("begun", &self.begun)
            .finish()
    }
}
