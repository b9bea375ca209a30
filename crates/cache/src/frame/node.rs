//! A node of the tree: 64 slots, for frames or for nodes. Slots are changed in [`slot`].
#![expect(unsafe_code, reason = "a part that only the writer touches")]

use super::aging::{Aging, Sets};
use super::bits::mask;
use super::gate::Gate;
use super::keeps::{Keeps, Writing};
use super::word::NOTHING;
use crate::frame_primitive::{self, AtomicPtr, AtomicU64, Ordering::Relaxed, Own as _, constant};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{AddAssign, Index, Neg, Range};

pub(super) mod slot;
mod way;

/// Slots of a node: as many as a word has bits.
pub(super) const FAN: u64 = 1 << FAN_SHIFT;
pub(super) const FAN_SHIFT: u32 = frame_primitive::FAN_SHIFT;

/// 64 slots, each for `1 << shift` numbers, from `base` on.
///
/// *Invariants.* With `shift == 0` its slots hold frames, else nodes. Bit `i` of `used` is set if
/// and only if `slots[i]` is not empty. `frames`, `bytes` (of frames) and `nodes` count everything
/// in this node and below, itself included. Only the writer writes these fields. `side`, `note` and
/// `gate` are used in the root only; the gate of any other node is closed.
#[repr(C, align(64))]
pub(super) struct Node<X> {
    pub(super) base: u64,
    pub(super) shift: u32,
    pub(super) gate: Gate,
    pub(super) aging: Aging,
    // Separates what every reader needs from what changes with each frame.
    _padding: [u64; 2],
    pub(super) slots: Slots<X>,
    used: AtomicU64,
    frames: AtomicU64,
    bytes: AtomicU64,
    nodes: AtomicU64,
    /// A number for every reader, stored with the side part.
    note: AtomicU64,
    pub(super) sets: Sets,
    side: UnsafeCell<Option<Box<X>>>,
}

/// A slot.
///
/// *Invariant.* No two slots hold the same frame or node, except while `enclose` or `disclose`
/// moves one between a slot and a node that takes its place.
pub(super) struct Slot<X> {
    word: AtomicPtr<u8>,
    owns: PhantomData<Box<Node<X>>>,
}

// SAFETY: it hands out shared references to nodes, which are `Sync`, and frees them on any thread.
unsafe impl<X: Send> Sync for Slot<X> {}
// SAFETY: as above.
unsafe impl<X: Send> Send for Slot<X> {}

impl<X> Slot<X> {
    constant! {
        pub(super) fn empty() -> Self {
            Self {
                word: AtomicPtr::new(NOTHING),
                owns: PhantomData,
            }
        }
    }
}

/// The slots of a node. Slots of consecutive numbers lie on different cache lines. So a reader of a
/// page shares a line with writers of pages far from it, and not with writers of the next ones.
pub(super) struct Slots<X>([Slot<X>; FAN as usize]);

/// The index of a slot in memory: the next slot is on the next line, one place further.
///
/// The step is one more than the slots of a line, which takes one instruction.
#[inline]
fn scattered(at: usize) -> usize {
    const STEP: usize = 9;
    at * STEP % FAN as usize
}

impl<X> Index<usize> for Slots<X> {
    type Output = Slot<X>;

    #[inline]
    fn index(&self, at: usize) -> &Slot<X> {
        &self.0[scattered(at)]
    }
}

/// The index of the slot for `number` in a node with this shift that covers it.
#[inline]
pub(super) fn place(number: u64, shift: u32) -> usize {
    ((number >> shift) % FAN) as usize
}

/// A change of a node's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) frames: i64,
    /// Capacity of the frames.
    pub(super) bytes: i64,
    pub(super) nodes: i64,
}

impl Counts {
    /// One frame with this capacity.
    pub(super) fn frame(capacity: usize) -> Self {
        Self {
            frames: 1,
            bytes: capacity as i64,
            nodes: 0,
        }
    }

    /// One node.
    pub(super) const NODE: Self = Self {
        frames: 0,
        bytes: 0,
        nodes: 1,
    };

    /// All that a node counts.
    pub(super) fn of<X>(node: &Node<X>) -> Self {
        Self {
            frames: node.frames().cast_signed(),
            bytes: node.bytes().cast_signed(),
            nodes: node.nodes().cast_signed(),
        }
    }
}

impl Neg for Counts {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            frames: -self.frames,
            bytes: -self.bytes,
            nodes: -self.nodes,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.nodes += other.nodes;
    }
}

// SAFETY: only the holder of the writer's token touches `side` (which moves `X` between threads).
// Everything else is atomic or fixed.
unsafe impl<X: Send> Sync for Node<X> {}

impl<X> Node<X> {
    fn new(base: u64, shift: u32) -> Box<Self> {
        Box::new(Self {
            base,
            shift,
            gate: Gate::closed(),
            aging: Aging::default(),
            _padding: [0; 2],
            slots: Slots(std::array::from_fn(|_| Slot::empty())),
            used: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            nodes: AtomicU64::new(1),
            note: AtomicU64::new(0),
            sets: Sets::default(),
            side: UnsafeCell::new(None),
        })
    }

    /// An empty node for the frames around `number`.
    pub(super) fn leaf(number: u64) -> Box<Self> {
        Self::new(number & !(FAN - 1), 0)
    }

    /// The smallest node that can hold `inner` (not yet in it) and the frame `number`, which
    /// `inner` cannot.
    pub(super) fn around(inner: &Self, number: u64) -> Box<Self> {
        let mut shift = inner.shift;
        while inner.base >> (shift + FAN_SHIFT) != number >> (shift + FAN_SHIFT) {
            shift += FAN_SHIFT;
        }
        let span = FAN << shift;
        let outer = Self::new(inner.base & !(span - 1), shift);
        outer.frames.store(inner.frames(), Relaxed);
        outer.bytes.store(inner.bytes(), Relaxed);
        outer.nodes.store(inner.nodes() + 1, Relaxed);
        outer.used.store(1 << outer.place(inner.base), Relaxed);
        outer
    }

    /// The numbers that it covers.
    pub(super) fn span(&self) -> Range<u64> {
        self.base..self.base + (FAN << self.shift)
    }

    /// Does it cover `number`?
    #[inline]
    pub(super) fn spans(&self, number: u64) -> bool {
        (number ^ self.base) >> self.shift < FAN
    }

    /// Does it cover `number`, if it is a leaf?
    #[inline]
    pub(super) fn spans_as_leaf(&self, number: u64) -> bool {
        number ^ self.base < FAN
    }

    /// The index of the slot for `number`, which it covers.
    #[inline]
    pub(super) fn place(&self, number: u64) -> usize {
        place(number, self.shift)
    }

    /// The first number of slot `bit`.
    pub(super) fn first_of(&self, bit: u32) -> u64 {
        self.base + (u64::from(bit) << self.shift)
    }

    /// The bits of the slots that share a number with `numbers`.
    pub(super) fn mask_of(&self, numbers: &Range<u64>) -> u64 {
        let span = self.span();
        let (start, end) = (numbers.start.max(span.start), numbers.end.min(span.end));
        if start >= end {
            return 0;
        }
        let first = (start - self.base) >> self.shift;
        let last = (end - 1 - self.base) >> self.shift;
        mask(first..last + 1)
    }

    /// A bit for each slot that is not empty, for the writer.
    pub(super) fn used(&self) -> u64 {
        self.used.own()
    }

    /// The same for other threads, as a guess.
    pub(super) fn used_about(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// A bit for each slot that is not empty; exact for the writer only.
    pub(super) fn used_as(&self, keeps: &impl Keeps) -> u64 {
        keeps.used(&self.used)
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes.load(Relaxed)
    }

    pub(super) fn note(&self) -> u64 {
        self.note.load(Relaxed)
    }

    pub(super) fn set_note(&self, note: u64) {
        self.note.store(note, Relaxed);
    }

    /// Corrects the counts, for the writer.
    pub(super) fn count(&self, change: Counts, _writing: &Writing) {
        self.frames
            .store(self.frames().wrapping_add_signed(change.frames), Relaxed);
        self.bytes
            .store(self.bytes().wrapping_add_signed(change.bytes), Relaxed);
        self.nodes
            .store(self.nodes().wrapping_add_signed(change.nodes), Relaxed);
    }

    /// Notes whether slot `at` holds something, for the writer that changed it.
    pub(super) fn mark(&self, at: usize, holds: bool, _writing: &Writing) {
        let rest = self.used() & !(1 << at);
        self.used.store(rest | u64::from(holds) << at, Relaxed);
    }

    /// The side part, for the writer to read.
    pub(super) fn side<'w>(&'w self, _writing: &'w Writing) -> Option<&'w X> {
        // SAFETY: the one writer's token is borrowed, so nothing changes the side part meanwhile.
        unsafe { (*self.side.get()).as_deref() }
    }

    /// The side part, for the writer to change.
    pub(super) fn side_mut<'w>(&'w self, _writing: &'w mut Writing) -> &'w mut Option<Box<X>> {
        // SAFETY: the one writer's token is borrowed exclusively as long as this lives.
        unsafe { &mut *self.side.get() }
    }

    /// Moves the side part to `next`, the next root. The note stays here too, for readers that
    /// found it here.
    pub(super) fn move_side(&self, next: &Self, writing: &mut Writing) {
        let part = self.side_mut(writing).take();
        next.set_note(self.note());
        *next.side_mut(writing) = part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of a cache line.
    const LINE: usize = 8;

    #[test]
    fn each_slot_has_a_place_of_its_own_and_none_is_on_the_line_of_its_neighbours() {
        let places: Vec<usize> = (0..FAN as usize).map(scattered).collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..FAN as usize));
        for near in places.windows(LINE - 1) {
            let lines: std::collections::HashSet<_> =
                near.iter().map(|place| place / LINE).collect();
            assert_eq!(lines.len(), near.len());
        }
    }
}
