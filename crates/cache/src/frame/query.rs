//! Searches for frames and gaps by the writer; readers may ask for the first frame and the first
//! gap.

use super::bits::{bits, mask};
use super::keeps::Keeps;
use super::lock::FramesLock;
use super::map::{Frames, Snapshot};
#[cfg(test)]
use super::node::Counts;
use super::node::slot::Entry;
use super::node::{FAN, FAN_SHIFT, Node, Slot};
use super::size::FRAME_END;
use std::ops::Range;

impl<X: Send + 'static> Frames<X> {
    fn next_frame(&self, number: u64, keeps: &impl Keeps) -> Option<u64> {
        match self.root.entry(keeps)? {
            Entry::Frame(_) => (number == 0).then_some(0),
            Entry::Node(root) => next_in(root, number, keeps),
        }
    }

    fn next_gap(&self, number: u64, keeps: &impl Keeps) -> u64 {
        let mut at = number;
        loop {
            let group = at & !(FAN - 1);
            let there = self.mask(at >> FAN_SHIFT, keeps);
            match bits(!there & mask(at - group..FAN)).next() {
                Some(bit) => return group + u64::from(bit),
                None => at = group + FAN,
            }
        }
    }

    fn mask(&self, group: u64, keeps: &impl Keeps) -> u64 {
        let number = group << FAN_SHIFT;
        if number >= FRAME_END {
            return 0;
        }
        let mut slot: &Slot<X> = &self.root;
        loop {
            match slot.entry(keeps) {
                None => return 0,
                Some(Entry::Frame(_)) => return u64::from(number == 0),
                Some(Entry::Node(node)) if !node.spans(number) => return 0,
                Some(Entry::Node(node)) if node.shift == 0 => return node.used_as(keeps),
                Some(Entry::Node(node)) => slot = &node.slots[node.place(number)],
            }
        }
    }
}

fn next_in<X>(node: &Node<X>, number: u64, keeps: &impl Keeps) -> Option<u64> {
    let candidates = node.used_as(keeps) & node.mask_of(&(number..u64::MAX));
    if node.shift == 0 {
        return bits(candidates).next().map(|bit| node.first_of(bit));
    }
    // The first child may hold lower numbers only; the second does not.
    bits(candidates)
        .take(2)
        .find_map(|bit| next_in(child(node, bit, keeps)?, number, keeps))
}

fn child<'g, X>(node: &'g Node<X>, bit: u32, keeps: &'g impl Keeps) -> Option<&'g Node<X>> {
    match node.slots[bit as usize].entry(keeps)? {
        Entry::Node(child) => Some(child),
        Entry::Frame(_) => None,
    }
}

impl<X: Send + 'static> Snapshot<'_, X> {
    /// The first frame at or after `number`. A change of a single frame may come between this
    /// answer and another; each then belongs to a state of its own.
    #[must_use]
    pub fn next_frame(&self, number: u64) -> Option<u64> {
        self.map.next_frame(number, self.guard)
    }

    /// The first number at or after `number` without a frame; as for
    /// [`next_frame`](Self::next_frame).
    #[must_use]
    pub fn next_gap(&self, number: u64) -> u64 {
        self.map.next_gap(number, self.guard)
    }
}

impl<X: Send + 'static> FramesLock<'_, X> {
    /// The first frame at or after `number`.
    #[must_use]
    pub fn next_frame(&self, number: u64) -> Option<u64> {
        self.map.next_frame(number, &self.writing)
    }

    /// The last frame before `number`.
    pub(crate) fn last_frame(&self, number: u64) -> Option<u64> {
        match self.map.root.entry(&self.writing)? {
            Entry::Frame(_) => (number > 0).then_some(0),
            Entry::Node(root) => self.last_in(root, number),
        }
    }

    fn last_in(&self, node: &Node<X>, number: u64) -> Option<u64> {
        let mut candidates = node.used() & node.mask_of(&(0..number));
        while candidates != 0 {
            let bit = candidates.ilog2();
            candidates &= !(1 << bit);
            if node.shift == 0 {
                return Some(node.first_of(bit));
            }
            if let Some(found) =
                child(node, bit, &self.writing).and_then(|child| self.last_in(child, number))
            {
                return Some(found);
            }
        }
        None
    }

    /// The first number at or after `number` without a frame.
    #[must_use]
    pub fn next_gap(&self, number: u64) -> u64 {
        self.map.next_gap(number, &self.writing)
    }

    /// A bit for each of the 64 numbers from `group * 64` on that has a frame.
    #[must_use]
    pub fn mask(&self, group: u64) -> u64 {
        self.map.mask(group, &self.writing)
    }

    /// How many of `numbers` have a frame.
    #[must_use]
    pub fn count(&self, numbers: &Range<u64>) -> u64 {
        match self.map.root.entry(&self.writing) {
            None => 0,
            Some(Entry::Frame(_)) => u64::from(numbers.contains(&0)),
            Some(Entry::Node(root)) => self.count_in(root, numbers),
        }
    }

    fn count_in(&self, node: &Node<X>, numbers: &Range<u64>) -> u64 {
        let span = node.span();
        if numbers.start <= span.start && span.end <= numbers.end {
            return node.frames();
        }
        let touched = node.used() & node.mask_of(numbers);
        if node.shift == 0 {
            return u64::from(touched.count_ones());
        }
        bits(touched)
            .filter_map(|bit| child(node, bit, &self.writing))
            .map(|child| self.count_in(child, numbers))
            .sum()
    }
}

#[cfg(test)]
impl<X: Send + 'static> FramesLock<'_, X> {
    /// Compares the counts of every node with its content, and checks the shape.
    pub(crate) fn check_tree(&self) {
        if let Some(Entry::Node(root)) = self.map.root.entry(&self.writing) {
            let is_side_only = root.used() == 0 && root.shift == 0;
            assert!(is_side_only || root.used() != 0);
            if !is_side_only {
                self.check_node(root);
            }
        }
    }

    fn check_node(&self, node: &Node<X>) -> Counts {
        assert_eq!(node.base % (FAN << node.shift), 0);
        let mut counts = Counts::NODE;
        for bit in 0..FAN as usize {
            let slot = &node.slots[bit];
            assert_eq!(
                node.used() >> bit & 1 == 1,
                !slot.holds_nothing(&self.writing)
            );
            match slot.entry(&self.writing) {
                None => {}
                Some(Entry::Frame(frame)) => {
                    assert_eq!(node.shift, 0);
                    counts += Counts::frame(frame.capacity());
                }
                Some(Entry::Node(child)) => {
                    assert!(child.shift < node.shift);
                    assert_eq!(slot.find(&self.writing).shift(), child.shift);
                    assert_eq!(node.place(child.base), bit);
                    counts += self.check_node(child);
                }
            }
        }
        assert_eq!(Counts::of(node), counts);
        assert!(node.used().count_ones() > u32::from(node.shift > 0));
        counts
    }
}
