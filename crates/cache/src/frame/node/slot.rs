//! A slot for a frame or a node: followed by readers, changed by one writer.
#![expect(
    unsafe_code,
    reason = "shared ownership by the rules of epochs and of the map's lock"
)]

use super::{Node, Slot};
use crate::epoch;
use crate::frame::fresh::Frame;
use crate::frame::garbage;
use crate::frame::keeps::{Keeps, Writing};
use crate::frame::size::FRAME_SIZE;
use crate::frame::stored::Stored;
use crate::frame::word::{self, Content, NOTHING, Word};
use crate::frame_primitive::{Ordering, Own as _};
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

/// The content of a slot, decoded.
pub(crate) enum Entry<'g, X> {
    Frame(Stored<'g>),
    Node(&'g Node<X>),
}

/// A frame or node that is in no slot now. Dropping it retires it: a reader may still have found it
/// in its slot.
pub(crate) struct Owned<X: Send + 'static> {
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

    pub(crate) fn frame(frame: Frame) -> Self {
        Self::new(word::of_frame(frame.into_block()))
    }

    pub(crate) fn node(node: Box<Node<X>>) -> Self {
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
                // SAFETY: in no slot, so later pins cannot find it.
                unsafe { epoch::retire_with(block.start.as_ptr().cast(), garbage::freeing(block)) };
                garbage::retired(u64::from(block.capacity() == FRAME_SIZE));
            }
            Content::Node(node) => {
                // SAFETY: owned, so it is live.
                let frames = unsafe { node.as_ref() }.frames();
                // SAFETY: in no slot, so later pins cannot find it, and `X` may be dropped on any
                // thread.
                unsafe { epoch::retire_with(node.as_ptr().cast(), free_node::<X>) };
                garbage::retired(frames);
            }
        }
    }
}

/// # Safety
/// No thread can find the node any more; called once.
unsafe fn free_node<X>(node: *mut ()) {
    // SAFETY: leaked by `Owned::node`; the rest is the caller's promise.
    drop(unsafe { Box::from_raw(node.cast::<Node<X>>()) });
}

/// Frees what a word leads to.
///
/// # Safety
/// No thread can find it any more; called once.
unsafe fn free_now<X>(word: Word) {
    match word::parse::<Node<X>>(word) {
        Content::Nothing => {}
        // SAFETY: the caller's promise.
        Content::Frame(block) => unsafe { garbage::free(block) },
        // SAFETY: the caller's promise.
        Content::Node(node) => unsafe { free_node::<X>(node.as_ptr().cast()) },
    }
}

impl<X> Slot<X> {
    pub(crate) fn is_empty(&self) -> bool {
        self.word.load(Ordering::Relaxed).is_null()
    }

    /// Is it empty? Exact, for the writer.
    pub(crate) fn holds_nothing(&self, _writing: &Writing) -> bool {
        self.word.own().is_null()
    }

    /// Its content.
    #[inline]
    pub(crate) fn entry<'g>(&'g self, keeps: &'g impl Keeps) -> Option<Entry<'g, X>> {
        match word::parse::<Node<X>>(keeps.load(&self.word)) {
            Content::Nothing => None,
            // SAFETY: as below.
            Content::Frame(block) => Some(Entry::Frame(unsafe { Stored::new(block) })),
            // SAFETY: in a slot, so it is live, and kept for `'g`; nodes are only shared.
            Content::Node(node) => Some(Entry::Node(unsafe { node.as_ref() })),
        }
    }

    /// Frees its content; `&mut self` excludes readers.
    pub(crate) fn clear_mut(&mut self) {
        let word = self.word.own();
        self.word.store(NOTHING, Ordering::Relaxed);
        // SAFETY: it was in this slot only, and `&mut` excludes that a reader found it there.
        unsafe { free_now::<X>(word) };
    }
}

impl<X: Send + 'static> Slot<X> {
    /// Stores `new`; the old content is retired.
    pub(crate) fn replace(&self, new: Option<Owned<X>>, _writing: &Writing) {
        let old = self.owned();
        let word = new.map_or(NOTHING, Owned::into_word);
        self.word.store(word, Ordering::Release);
        drop(old);
    }

    /// Its content as an owned value: the caller stores something else before it drops that.
    fn owned(&self) -> Option<Owned<X>> {
        let word = self.word.own();
        (!word.is_null()).then(|| Owned::new(word))
    }

    /// Takes its content out.
    pub(crate) fn take(&self, _writing: &Writing) -> Option<Owned<X>> {
        let old = self.owned();
        self.word.store(NOTHING, Ordering::Release);
        old
    }

    /// Fills more of the frame: `data` at `at`, and zeros before it unless a gap may stay. One
    /// store makes all visible. `false`, without a change, if there is no frame, no room, or `at`
    /// is filled already.
    pub(crate) fn extend(&self, at: usize, data: &[u8], _writing: &Writing) -> bool {
        let word = self.word.own();
        let Content::Frame(mut block) = word::parse::<Node<X>>(word) else {
            return false;
        };
        // SAFETY: in the slot, and only the one writer, here, could take it out or fill it. Readers
        // know only the bytes that the word counts.
        let put = unsafe { block.put(at, data) };
        if put {
            // Release: a reader that sees the new word sees the bytes.
            self.word.store(word::of_frame(block), Ordering::Release);
        }
        put
    }

    /// Fills the gaps of a broken frame with zeros, which changes no content.
    #[cold]
    pub(crate) fn mend(&self, _writing: &Writing) {
        if let Content::Frame(mut block) = word::parse::<Node<X>>(self.word.own()) {
            // SAFETY: as in `extend`.
            unsafe { block.mend() };
            self.word.store(word::of_frame(block), Ordering::Release);
        }
    }

    /// Puts `outer` here and the old content into its slot `at`, in one step for readers.
    pub(crate) fn enclose(&self, outer: Box<Node<X>>, at: usize, _writing: &Writing) {
        let inner = self.word.own();
        outer.slots[at].word.store(inner, Ordering::Relaxed);
        // Release: readers of `outer` see it whole. The old content is in its slot now.
        self.word
            .store(Owned::node(outer).into_word(), Ordering::Release);
    }

    /// Replaces the node here by the content of its slot `at`; the node is retired.
    pub(crate) fn disclose(&self, at: usize, _writing: &Writing) {
        let Some(outer) = self.owned() else { return };
        if let Content::Node(node) = word::parse::<Node<X>>(outer.word) {
            // SAFETY: owned, and retired only at the end of this function.
            let slot = unsafe { &node.as_ref().slots[at] };
            let inner = slot.word.own();
            self.word.store(inner, Ordering::Release);
            // Readers still in the outer node miss it: they check the version.
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

impl<X: Send + 'static> Node<X> {
    /// Puts `content` into slot `at`.
    pub(crate) fn put(&self, at: usize, content: Owned<X>, writing: &Writing) {
        self.slots[at].replace(Some(content), writing);
        self.mark(at, true, writing);
    }
}
