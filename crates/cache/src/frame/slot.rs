//! One place for a frame or a node: followed by readers, changed by one writer.
#![expect(
    unsafe_code,
    reason = "shared ownership by the rules of epochs and of the map's lock"
)]

use super::block::Block;
use super::fresh::Frame;
use super::node::Node;
use super::way::Found;
use super::word::{self, Content, NOTHING, Word};
use super::{FRAME_SIZE, recycle};
use crate::epoch::{self, Brief, Guard};
use crate::frame_primitive::{AtomicPtr, AtomicU64, Ordering, Own as _, constant};
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

/// Says that its holder is the one writer of a map: there is one for each map at a time.
pub(super) struct Writing(());

impl Writing {
    /// # Safety
    /// The caller holds the map's lock for as long as this lives, or has the map to itself, and
    /// uses it for slots of that map and of nodes that are not published yet.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

/// What keeps the content of a slot from being freed while it is borrowed.
///
/// # Safety
/// Nothing that was in a slot while the value lived is freed while it still lives.
pub(super) unsafe trait Keeps {
    /// What the slot with this word holds.
    fn load(&self, word: &AtomicPtr<u8>) -> Word;
    /// The bits that say which slots of a node hold something.
    fn used(&self, bits: &AtomicU64) -> u64;
}

// SAFETY: whatever leaves a slot is retired (here, below), and freed only after all guards of
// that moment are gone.
unsafe impl Keeps for Guard {
    #[inline]
    fn load(&self, word: &AtomicPtr<u8>) -> Word {
        // Pairs with the releases below: the frame's bytes, as many as the word says, and the
        // node were written before.
        word.load(Ordering::Acquire)
    }

    #[inline]
    fn used(&self, bits: &AtomicU64) -> u64 {
        // They say nothing of what is in the slots, which are asked themselves.
        bits.load(Ordering::Relaxed)
    }
}

// SAFETY: as for a guard, which it is.
unsafe impl Keeps for Brief {
    #[inline]
    fn load(&self, word: &AtomicPtr<u8>) -> Word {
        // As for a guard.
        word.load(Ordering::Acquire)
    }

    #[inline]
    fn used(&self, bits: &AtomicU64) -> u64 {
        bits.load(Ordering::Relaxed)
    }
}

// SAFETY: only the writer takes anything out of a slot, and that is he: the map's operations that
// do need the lock exclusively, so nothing borrowed from it is left then.
unsafe impl Keeps for Writing {
    #[inline]
    fn load(&self, word: &AtomicPtr<u8>) -> Word {
        word.own()
    }

    #[inline]
    fn used(&self, bits: &AtomicU64) -> u64 {
        bits.own()
    }
}

/// A frame that a slot holds.
#[derive(Clone, Copy)]
pub struct Stored<'g> {
    block: Block,
    kept: PhantomData<&'g [u8]>,
}

impl<'g> Stored<'g> {
    /// # Safety
    /// A frame that was found in a slot, while something kept it for `'g`.
    #[inline]
    pub(super) unsafe fn new(block: Block) -> Self {
        Self {
            block,
            kept: PhantomData,
        }
    }

    /// The bytes filled; behind them the frame is zero. Of a broken frame, which is only
    /// [shown](super::FramesLock::show): none.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'g [u8] {
        // SAFETY: found in a slot while something kept it for `'g`; those bytes were initialised
        // before the word that tells of them was stored, and are not written again.
        unsafe { self.block.bytes() }
    }

    /// Are there gaps between the filled bytes?
    #[inline]
    pub(super) fn is_broken(self) -> bool {
        self.block.fill.as_first().is_none()
    }

    /// Bytes there is room for.
    #[must_use]
    pub fn capacity(self) -> usize {
        self.block.capacity()
    }

    /// How many bytes are filled.
    #[inline]
    #[must_use]
    pub fn filled(self) -> usize {
        self.block.fill.count()
    }

    pub(super) fn block(self) -> Block {
        self.block
    }
}

/// What a slot holds.
pub(super) enum Entry<'g, X> {
    Frame(Stored<'g>),
    Node(&'g Node<X>),
}

/// A frame or node that belongs in a slot and is in none now. Dropped, it is retired: readers may
/// still have met it where it was.
pub(super) struct Owned<X: Send + 'static> {
    word: Word,
    owns: PhantomData<Box<Node<X>>>,
}

impl<X: Send + 'static> Owned<X> {
    fn new(word: Word) -> Self {
        Self {
            word,
            owns: PhantomData,
        }
    }

    pub(super) fn frame(frame: Frame) -> Self {
        Self::new(word::of_frame(frame.into_block()))
    }

    pub(super) fn node(node: Box<Node<X>>) -> Self {
        let shift = node.shift;
        Self::new(word::of_node(NonNull::from(Box::leak(node)), shift))
    }

    fn into_word(self) -> Word {
        let word = self.word;
        mem::forget(self);
        word
    }
}

impl<X: Send + 'static> Drop for Owned<X> {
    fn drop(&mut self) {
        // Plain addresses, which a leak detector recognises, unlike words.
        match word::parse::<Node<X>>(self.word) {
            Content::Nothing => {}
            Content::Frame(block) => {
                // SAFETY: in no slot, so new pins cannot meet it.
                unsafe { epoch::retire_with(block.start.as_ptr().cast(), recycle::freeing(block)) };
                recycle::retired(u64::from(block.capacity() == FRAME_SIZE));
            }
            Content::Node(node) => {
                // SAFETY: owned, hence live.
                let frames = unsafe { node.as_ref() }.frames();
                // SAFETY: in no slot, so new pins cannot meet it, and `X` may be dropped anywhere.
                unsafe { epoch::retire_with(node.as_ptr().cast(), free_node::<X>) };
                recycle::retired(frames);
            }
        }
    }
}

/// # Safety
/// A node that nobody can meet any more; once only.
unsafe fn free_node<X>(node: *mut ()) {
    // SAFETY: leaked by `Owned::node`; the rest is the caller's promise.
    drop(unsafe { Box::from_raw(node.cast::<Node<X>>()) });
}

/// Frees what a word stands for.
///
/// # Safety
/// Nobody can meet it any more; once only.
unsafe fn free_now<X>(word: Word) {
    match word::parse::<Node<X>>(word) {
        Content::Nothing => {}
        // SAFETY: the caller's promise.
        Content::Frame(block) => unsafe { recycle::free(block) },
        // SAFETY: the caller's promise.
        Content::Node(node) => unsafe { free_node::<X>(node.as_ptr().cast()) },
    }
}

/// The place.
///
/// *Invariant.* No two slots hold the same frame or node, except for the moment in which one
/// moves between a slot and a node that takes its place.
pub(super) struct Slot<X> {
    word: AtomicPtr<u8>,
    owns: PhantomData<Box<Node<X>>>,
}

// SAFETY: it hands out shared references to nodes, which are `Sync`, and frees them anywhere.
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

    pub(super) fn is_empty(&self) -> bool {
        self.word.load(Ordering::Relaxed).is_null()
    }

    /// Did it hold a node just now?
    #[inline(always)]
    pub(super) fn leads_on(&self) -> bool {
        word::is_node(self.word.load(Ordering::Relaxed))
    }

    /// Is it empty, for the writer to know for sure?
    pub(super) fn holds_nothing(&self, _writing: &Writing) -> bool {
        self.word.own().is_null()
    }

    /// What is there.
    #[inline]
    pub(super) fn load<'g>(&'g self, keeps: &'g impl Keeps) -> Option<Entry<'g, X>> {
        match word::parse::<Node<X>>(keeps.load(&self.word)) {
            Content::Nothing => None,
            // SAFETY: as below.
            Content::Frame(block) => Some(Entry::Frame(unsafe { Stored::new(block) })),
            // SAFETY: in a slot, hence live, and kept for `'g`; nodes are only shared.
            Content::Node(node) => Some(Entry::Node(unsafe { node.as_ref() })),
        }
    }

    /// What is there, to follow without a look into nodes.
    #[inline]
    pub(super) fn find<'g>(&'g self, keeps: &'g impl Keeps) -> Found<'g, X> {
        // SAFETY: what is in a slot is live, and kept for `'g`.
        unsafe { Found::new(keeps.load(&self.word)) }
    }

    /// Frees what is there, for whoever has the slot to himself.
    pub(super) fn clear_mut(&mut self) {
        let word = self.word.own();
        self.word.store(NOTHING, Ordering::Relaxed);
        // SAFETY: it was in this slot only, and `&mut` leaves nobody who could have met it there.
        unsafe { free_now::<X>(word) };
    }
}

impl<X: Send + 'static> Slot<X> {
    /// Puts `new` there; what was there is retired.
    pub(super) fn replace(&self, new: Option<Owned<X>>, _writing: &Writing) {
        let old = self.owned();
        let word = new.map_or(NOTHING, Owned::into_word);
        self.word.store(word, Ordering::Release);
        drop(old);
    }

    /// What is there, as the caller's own: he stores something else before he drops it.
    fn owned(&self) -> Option<Owned<X>> {
        let word = self.word.own();
        (!word.is_null()).then(|| Owned::new(word))
    }

    /// Takes out what is there.
    pub(super) fn take(&self, _writing: &Writing) -> Option<Owned<X>> {
        let old = self.owned();
        self.word.store(NOTHING, Ordering::Release);
        old
    }

    /// Fills more of the frame that is there: `data` at `at`, and zeros before it unless a gap may stay; and shows
    /// all at once. Not if there is no frame, no room, or something else at `at` already.
    pub(super) fn extend(&self, at: usize, data: &[u8], _writing: &Writing) -> bool {
        let word = self.word.own();
        let Content::Frame(mut block) = word::parse::<Node<X>>(word) else {
            return false;
        };
        // SAFETY: in the slot, and only the one writer, here, could take it out or fill it; no
        // reader knows of bytes but those that the word tells of.
        let put = unsafe { block.put(at, data) };
        if put {
            // Release: whoever sees the new word sees the bytes.
            self.word.store(word::of_frame(block), Ordering::Release);
        }
        put
    }

    /// Fills the gaps of a broken frame, which changes nothing that anybody sees.
    #[cold]
    pub(super) fn mend(&self, _writing: &Writing) {
        if let Content::Frame(mut block) = word::parse::<Node<X>>(self.word.own()) {
            // SAFETY: as in `extend`.
            unsafe { block.mend() };
            self.word.store(word::of_frame(block), Ordering::Release);
        }
    }

    /// Puts `outer` there and what was there into its slot `at`, in one step for readers.
    pub(super) fn enclose(&self, outer: Box<Node<X>>, at: usize, _writing: &Writing) {
        let inner = self.word.own();
        outer.slots[at].word.store(inner, Ordering::Relaxed);
        // Release: readers of `outer` see it whole. What was here is in its slot now.
        self.word
            .store(Owned::node(outer).into_word(), Ordering::Release);
    }

    /// Puts what slot `at` of the node here holds in the place of that node, which is retired.
    pub(super) fn disclose(&self, at: usize, _writing: &Writing) {
        let Some(outer) = self.owned() else { return };
        if let Content::Node(node) = word::parse::<Node<X>>(outer.word) {
            // SAFETY: owned, and not retired before the end of this function.
            let slot = unsafe { &node.as_ref().slots[at] };
            let inner = slot.word.own();
            self.word.store(inner, Ordering::Release);
            // For readers still in the outer node it is gone too early: they check the version.
            slot.word.store(NOTHING, Ordering::Release);
            drop(outer);
        } else {
            mem::forget(outer);
        }
    }
}

impl<X> Drop for Slot<X> {
    fn drop(&mut self) {
        self.clear_mut();
    }
}
