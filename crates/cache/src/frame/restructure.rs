//! Changes of many frames at a time, and of the tree's shape.

use super::bits::bits;
use super::lock::FramesLock;
use super::node::slot::{Entry, Owned};
use super::node::{Counts, Node, Slot};
use super::size::FRAME_END;
use crate::epoch::{self, Guard};
use std::ops::Range;

impl<X: Send + 'static> FramesLock<'_, X> {
    /// Drops the frames of `numbers`. The cost is that of existing frames, not of the range.
    pub fn remove(&mut self, numbers: Range<u64>) {
        if self.is_empty() || numbers.is_empty() {
            return;
        }
        self.begin();
        let guard = epoch::pin();
        let side = self.take_side();
        self.remove_in(&self.map.root, &numbers, Some(side.note()), &guard);
        self.restore_side(side);
    }

    /// Removes frames below one slot, and leaves neither an empty node nor one with a single child.
    /// A new root gets the old root's note.
    fn remove_in(
        &self,
        slot: &Slot<X>,
        numbers: &Range<u64>,
        note: Option<u64>,
        guard: &Guard,
    ) -> Counts {
        let node = match slot.entry(guard) {
            None => return Counts::default(),
            Some(Entry::Frame(_)) => {
                if numbers.contains(&0) {
                    slot.replace(None, &self.writing);
                }
                return Counts::default();
            }
            Some(Entry::Node(node)) => node,
        };
        let mut gone = Counts::default();
        let span = node.span();
        if numbers.start <= span.start && span.end <= numbers.end {
            gone = Counts::of(node);
            slot.replace(Self::placeholder(note), &self.writing);
            return gone;
        }
        for bit in bits(node.used() & node.mask_of(numbers)) {
            let place = &node.slots[bit as usize];
            if node.shift == 0 {
                if let Some(Entry::Frame(frame)) = place.entry(guard) {
                    gone += Counts::frame(frame.capacity());
                }
                place.replace(None, &self.writing);
            } else {
                gone += self.remove_in(place, numbers, None, guard);
            }
            node.mark(
                bit as usize,
                !place.holds_nothing(&self.writing),
                &self.writing,
            );
        }
        node.count(-gone, &self.writing);
        if node.used() == 0 {
            slot.replace(Self::placeholder(note), &self.writing);
            gone.nodes += 1;
        } else if node.shift > 0 && node.used().is_power_of_two() {
            let only = node.used().trailing_zeros() as usize;
            if let (Some(note), Some(Entry::Node(child))) = (note, node.slots[only].entry(guard)) {
                child.set_note(note);
            }
            slot.disclose(only, &self.writing);
            gone.nodes += 1;
        }
        gone
    }

    /// The root after its last frame was removed: a node, if there is a side part.
    fn placeholder(note: Option<u64>) -> Option<Owned<X>> {
        let note = note.filter(|&note| note > 0)?;
        let leaf = Node::leaf(0);
        leaf.set_note(note);
        Some(Owned::node(leaf))
    }

    /// Moves every frame from `from` on by `by` numbers. None may leave the range of numbers, or
    /// arrive at a frame that stays: the caller has removed those.
    pub fn shift(&mut self, from: u64, by: i64) {
        if by == 0 || self.next_frame(from).is_none() {
            return;
        }
        self.begin();
        let guard = epoch::pin();
        let mut cursor = if by < 0 { from } else { FRAME_END };
        // In the direction of the move, so that each target is free when a frame arrives.
        loop {
            let next = if by < 0 {
                self.next_frame(cursor)
            } else {
                self.last_frame(cursor).filter(|&last| last >= from)
            };
            let Some(first) = next else { return };
            let leaf = self.leaf(first, &guard);
            let moving = leaf.used() & leaf.mask_of(&(from..FRAME_END));
            let span = leaf.span();
            if by < 0 {
                bits(moving).for_each(|bit| self.shift_one(leaf, bit, by, &guard));
                cursor = span.end;
            } else {
                // Highest first: the bits of the reversed word.
                bits(moving.reverse_bits())
                    .for_each(|bit| self.shift_one(leaf, 63 - bit, by, &guard));
                cursor = span.start;
            }
            if leaf.used() == 0 {
                self.remove(span);
            }
        }
    }

    fn shift_one(&mut self, leaf: &Node<X>, bit: u32, by: i64, guard: &Guard) {
        let number = leaf.first_of(bit);
        let Some(Entry::Frame(stored)) = leaf.slots[bit as usize].entry(guard) else {
            return;
        };
        let moving = Counts::frame(stored.capacity());
        let Some(frame) = leaf.slots[bit as usize].take(&self.writing) else {
            return;
        };
        leaf.mark(bit as usize, false, &self.writing);
        let target = number.wrapping_add_signed(by);
        assert!(target < FRAME_END, "a frame shifted out of range");
        if leaf.spans(target) {
            leaf.put(leaf.place(target), frame, &self.writing);
            leaf.came(leaf.place(target), None);
            return;
        }
        self.count_path(number, 0, -moving, guard);
        let into = self.leaf(target, guard);
        into.put(into.place(target), frame, &self.writing);
        into.came(into.place(target), None);
        self.count_path(target, 0, moving, guard);
    }

    /// Takes the smallest form, unless there is a side part: no tree for frame 0 alone, and no
    /// memory for no frame.
    pub fn normalise(&mut self) {
        let Some(Entry::Node(root)) = self.map.root.entry(&self.writing) else {
            return;
        };
        if root.shift > 0 || root.base > 0 || root.used() > 1 || self.side().is_some() {
            return;
        }
        let is_empty = root.used() == 0;
        self.begin();
        if is_empty {
            self.map.root.replace(None, &self.writing);
        } else {
            self.map.root.disclose(0, &self.writing);
        }
    }

    /// Drops everything, the side part included.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.begin();
            self.map.root.replace(None, &self.writing);
        }
    }
}
