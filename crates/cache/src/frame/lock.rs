use super::aging::Arrival;
use super::fresh::Frame;
use super::garbage::FlushGarbage;
use super::keeps::Writing;
use super::map::{Frames, Totals};
use super::node::slot::{Entry, Owned};
use super::node::{Counts, Node, Slot};
use super::size::FRAME_END;
use super::stored::Stored;
use crate::epoch::{self, Guard};
use crate::frame_primitive::{MutexGuard, Ordering, Own as _, fence};

/// The one writer of a [`Frames`], until it is dropped.
///
/// What is borrowed from it stays valid. Its changes become visible at once, unless
/// [`begin`](Self::begin) was called.
pub struct FramesLock<'a, X: Send + 'static> {
    pub(super) map: &'a Frames<X>,
    pub(super) writing: Writing,
    /// The version is odd.
    begun: bool,
    /// What the owner has declared inside.
    inside: Option<u64>,
    /// The epoch and kind of frames that arrive.
    pub(super) arrival: Option<(u8, Arrival)>,
    _lock: MutexGuard<'a, ()>,
    // Dropped last.
    _flush_garbage: FlushGarbage,
}

impl<X: Send + 'static> Frames<X> {
    /// Locks the map for writing.
    #[inline]
    #[expect(unsafe_code, reason = "here the lock is held")]
    pub fn lock(&self) -> FramesLock<'_, X> {
        FramesLock {
            _lock: self.lock.lock(),
            map: self,
            // SAFETY: this map's lock is held until the value is dropped. The token never leaves
            // the value, and is used for slots of this map only.
            writing: unsafe { Writing::new() },
            begun: false,
            inside: None,
            arrival: None,
            _flush_garbage: FlushGarbage,
        }
    }
}

impl<'a, X: Send + 'static> FramesLock<'a, X> {
    /// Hides all changes from readers until the lock is dropped: they must wait for the lock. For
    /// changes that belong together, those of other data read under a snapshot included.
    pub fn begin(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        let version = self.map.version.own().wrapping_add(1);
        self.map.version.store(version, Ordering::Relaxed);
        if let Some(Entry::Node(root)) = self.map.root.entry(&self.writing) {
            root.gate.close(&self.writing);
        }
        // A reader that sees any later change sees the odd version: pairs with the fence in
        // `Snapshot::holds`.
        fence(Ordering::Release);
    }

    /// Declares the first `frames` frames *inside*, whether they exist or not: a reader of one of
    /// them need not check the owner's end. The owner calls this once that is true. It holds until
    /// the next [`begin`](Self::begin), which the owner calls before it becomes untrue.
    ///
    /// # Panics
    /// If fewer are inside than before and `begin` was not called (with debug assertions).
    pub fn inside(&mut self, frames: u64) {
        debug_assert!(
            self.begun
                || match self.map.root.entry(&self.writing) {
                    Some(Entry::Node(root)) => root.gate.inside(&self.writing) <= frames,
                    _ => true,
                },
            "what is inside shrank without a beginning"
        );
        self.inside = Some(frames);
    }

    /// Ends a change of one store: a reader that sees the next change sees that this one happened.
    pub(super) fn shown(&self) {
        if !self.begun {
            let version = self.map.version.own().wrapping_add(2);
            self.map.version.store(version, Ordering::Release);
            // Orders what the owner stores after this, even relaxed (the size of a file).
            fence(Ordering::Release);
        }
    }

    /// What is held.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.map.totals_kept(&self.writing)
    }

    /// No frames and no side part?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The frame `number`; fills its gaps first if it is broken.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<Stored<'_>> {
        let found = self.map.find(number, &self.writing)?;
        if !found.is_broken() {
            return Some(found);
        }
        self.slot_there(number)?.mend(&self.writing);
        self.map.find(number, &self.writing)
    }

    /// The frame `number` as it is, with gaps: to be shared.
    #[must_use]
    pub fn show(&self, number: u64) -> Option<Stored<'_>> {
        self.map.find(number, &self.writing)
    }

    /// No frame except possibly number 0, and no side part?
    #[must_use]
    pub fn is_small(&self) -> bool {
        !matches!(self.map.root.entry(&self.writing), Some(Entry::Node(_)))
    }

    /// Stores `frame` as number `number`, in one step for readers.
    ///
    /// # Panics
    /// If `number` is [`FRAME_END`] or more.
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
            && let Some(Entry::Frame(old)) = leaf.slots[leaf.place(number)].entry(&self.writing)
        {
            change += -Counts::frame(old.capacity());
            leaf.put(leaf.place(number), Owned::frame(frame), &self.writing);
            leaf.put_there(leaf.place(number), false, self.arrival);
            if change.bytes != 0 {
                self.count_path(number, 0, change, &epoch::pin());
            }
            return;
        }
        let guard = epoch::pin();
        let leaf = self.leaf(number, &guard);
        leaf.put(leaf.place(number), Owned::frame(frame), &self.writing);
        leaf.put_there(leaf.place(number), true, self.arrival);
        self.count_path(number, 0, change, &guard);
    }

    /// Fills more of frame `number` without copying it: `data` at `at`, in one step for readers.
    /// Before it are zeros, or a gap that may be filled later. `false` if there is no such frame,
    /// no room in it, or something at `at` already.
    #[must_use]
    pub fn extend(&mut self, number: u64, at: usize, data: &[u8]) -> bool {
        let slot = self.slot_there(number);
        let extended = slot.is_some_and(|slot| slot.extend(at, data, &self.writing));
        if extended {
            self.shown();
        }
        extended
    }

    /// The slot of frame `number`, if it exists.
    fn slot_there(&self, number: u64) -> Option<&Slot<X>> {
        if self.is_small() {
            return (number == 0).then_some(&self.map.root);
        }
        let leaf = self.leaf_there(number)?;
        Some(&leaf.slots[leaf.place(number)])
    }

    /// The leaf that covers `number`, if it exists.
    pub(super) fn leaf_there(&self, number: u64) -> Option<&Node<X>> {
        let mut slot = &self.map.root;
        loop {
            match slot.entry(&self.writing)? {
                Entry::Node(node) if !node.spans(number) => return None,
                Entry::Node(node) if node.shift == 0 => return Some(node),
                Entry::Node(node) => slot = &node.slots[node.place(number)],
                Entry::Frame(_) => return None,
            }
        }
    }

    /// Adds `change` to the counts of all nodes on the path to `number` with a shift of at least
    /// `above`.
    pub(super) fn count_path(&self, number: u64, above: u32, change: Counts, guard: &Guard) {
        let mut slot = &self.map.root;
        while let Some(Entry::Node(node)) = slot.entry(guard) {
            if node.shift < above {
                return;
            }
            let nodes = if node.shift > 0 { change.nodes } else { 0 };
            node.count(Counts { nodes, ..change }, &self.writing);
            slot = &node.slots[node.place(number)];
        }
    }

    /// The leaf that covers `number`; makes the path to it if necessary.
    pub(super) fn leaf<'g>(&mut self, number: u64, guard: &'g Guard) -> &'g Node<X>
    where
        'a: 'g,
    {
        let map: &'g Frames<X> = self.map;
        let mut parent: Option<&'g Node<X>> = None;
        let mut slot = &map.root;
        loop {
            match slot.entry(guard) {
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

    /// Replaces `node` in `slot` by a node that also covers `number`.
    fn make_room(
        &mut self,
        slot: &Slot<X>,
        node: &Node<X>,
        number: u64,
        at_root: bool,
        guard: &Guard,
    ) {
        // Only a root may be empty: one that is kept for the side part.
        let is_empty = node.used() == 0;
        let new = if is_empty {
            Node::leaf(number)
        } else {
            Node::around(node, number)
        };
        if at_root {
            node.move_side(&new, &mut self.writing);
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
            // Release: a reader that sees the even version sees all changes, the owner's included.
            self.map.version.store(version, Ordering::Release);
        }
        if let Some(inside) = self.inside
            && let Some(Entry::Node(root)) = self.map.root.entry(&self.writing)
        {
            root.gate.open(inside, &self.writing);
        }
    }
}
