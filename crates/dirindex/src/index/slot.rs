//! One word that leads to an item, or holds a number in its place.
#![expect(unsafe_code, reason = "a pointer with a tag in its unused bits")]

use super::item::{Head, Item};
use crate::primitive::{AtomicPtr, End, Ordering};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Set in a word that holds a number, not a pointer; items are aligned to 8 bytes.
const NUMBER: usize = 1;
/// A mark for the owner of the slot, beside an item or not.
pub(super) const MARK: usize = 2;
/// The bits of the address.
const ADDRESS: usize = (1 << TAG_SHIFT) - 8;
const TAG_SHIFT: u32 = 48;

// A word holds a pointer, 16 bits of tag and 63 bits of an order.
const _: () = assert!(usize::BITS == 64);

/// A word of a row or of a bucket.
///
/// *Invariant.* A reference `&'g Slot` exists only where no item in the slot is freed during `'g`.
/// That is under a guard, or with the index's lock, while its holder has not retired the item.
#[repr(transparent)]
pub(super) struct Slot(AtomicPtr<Head>);

/// The content of a slot at a moment.
#[derive(Clone, Copy)]
pub(super) struct Word<'g> {
    raw: *mut Head,
    lifetime: PhantomData<&'g Head>,
}

impl<'g> Word<'g> {
    /// An item, with a tag that differs for most other items.
    ///
    /// # Panics
    /// If the item's address has more than 48 bits.
    pub(super) fn item(item: Item<'g>, tag: u16) -> Self {
        let raw = item.as_raw().as_ptr();
        assert!(
            raw.addr() & !ADDRESS == 0,
            "an address of more than 48 bits"
        );
        Self::new(raw.map_addr(|address| address | usize::from(tag) << TAG_SHIFT))
    }

    /// No item, but a number below 2^63.
    pub(super) fn number(number: u64) -> Self {
        let raw = number as usize;
        debug_assert!(raw <= usize::MAX >> 1);
        Self::new(ptr::without_provenance_mut(raw << 1 | NUMBER))
    }

    /// Neither an item nor a number.
    pub(super) fn nothing() -> Self {
        Self::new(ptr::null_mut())
    }

    fn new(raw: *mut Head) -> Self {
        Self {
            raw,
            lifetime: PhantomData,
        }
    }

    /// The same word with the owner's mark.
    pub(super) fn marked(self) -> Self {
        Self::new(self.raw.map_addr(|address| address | MARK))
    }

    #[inline]
    pub(super) fn is_marked(self) -> bool {
        self.raw.addr() & MARK != 0
    }

    /// Is this the tag? Meaningless in a number.
    #[inline]
    pub(super) fn has_tag(self, tag: u16) -> bool {
        self.raw.addr() >> TAG_SHIFT == usize::from(tag)
    }

    /// The number, if it holds one.
    #[inline]
    pub(super) fn as_number(self) -> Option<u64> {
        let address = self.raw.addr();
        (address & NUMBER != 0).then_some((address >> 1) as u64)
    }

    /// Is there neither an item nor a number?
    #[inline]
    pub(super) fn is_free(self) -> bool {
        self.raw.addr() & (ADDRESS | NUMBER) == 0
    }

    /// Is there an item?
    #[inline]
    pub(super) fn is_item(self) -> bool {
        let address = self.raw.addr();
        address & NUMBER == 0 && address & ADDRESS != 0
    }

    /// The item, if there is one.
    #[inline]
    pub(super) fn as_item(self) -> Option<Item<'g>> {
        if self.raw.addr() & NUMBER != 0 {
            return None;
        }
        let head = NonNull::new(self.raw.map_addr(|address| address & ADDRESS))?;
        // SAFETY: `Word::item` put it into the slot, and it is alive by the invariant of `Slot`.
        Some(unsafe { Item::from_raw(head) })
    }
}

impl Slot {
    /// An empty slot.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Tells a model that no thread uses it from now on.
    pub(super) fn end(&self) {
        self.0.end();
    }

    /// Its content.
    #[inline]
    pub(super) fn load(&self) -> Word<'_> {
        // Acquire pairs with the release in `store`: a reader that sees an item sees it built.
        Word::new(self.0.load(Ordering::Acquire))
    }

    /// Changes its content. The caller holds the index's lock, or no other thread knows the slot
    /// yet.
    pub(super) fn store(&self, word: Word<'_>) {
        // Release: see `load`.
        self.0.store(word.raw, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::item;
    use crate::primitive::run;

    #[test]
    fn a_word_keeps_item_tag_and_mark_apart() {
        run(|| {
            let head = item::allocate(b"name", 7, 8, 9);
            // SAFETY: just allocated, freed at the end.
            let item = unsafe { Item::from_raw(head) };
            for tag in [0, 1, 0x8000, u16::MAX] {
                let word = Word::item(item, tag);
                for word in [word, word.marked()] {
                    assert!(word.has_tag(tag) && !word.has_tag(tag ^ 1));
                    assert!(word.is_item());
                    assert_eq!(word.as_item().unwrap().key(), b"name");
                    assert_eq!(word.as_number(), None);
                }
                assert!(word.marked().is_marked() && !word.is_marked());
            }
            // SAFETY: allocated above, and not used any more.
            unsafe { item::free(head) };
        });
    }

    #[test]
    fn a_number_is_no_item() {
        for number in [0, 1, 2, 1 << 47, u64::MAX >> 1] {
            let word = Word::number(number);
            assert_eq!(word.as_number(), Some(number));
            assert!(word.as_item().is_none() && !word.is_item());
        }
        assert!(Word::nothing().as_item().is_none());
        assert!(Word::nothing().marked().as_item().is_none());
        assert!(!Word::nothing().marked().is_item());
    }
}
