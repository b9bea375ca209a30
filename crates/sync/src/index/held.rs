//! An object of an index, with the word that holds its state and its uses.
#![expect(unsafe_code, reason = "objects are reached by pointers that count")]

use super::shares::Sharing;
use super::word::Word;
use crate::primitive::{AtomicU64, Ordering};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// An object that an [`Index`](super::Index) holds (or held), by its number.
///
/// It is *live* or *freeing*. A live object has any number of uses. A use is a reference ([`Ref`])
/// or *raw*: a raw use is counted for an owner outside the process, which gives it back by number
/// ([`Ref::into_raw`], [`Held::forget`]). A live object without uses stays until it is evicted or
/// used again. Eviction makes it freeing. So does releasing the last use, once the object is
/// *marked*. It then belongs to the one [`Freeing`] that this step returned, and gets no use any
/// more.
///
/// Uses are counted in the object, or per core once several threads use it in turn.
///
/// The header takes 24 bytes, and objects are aligned to lines of 64 bytes.
///
/// [`Ref`]: super::Ref
/// [`Ref::into_raw`]: super::Ref::into_raw
/// [`Freeing`]: super::Freeing
#[repr(C, align(64))]
pub struct Held<T: Send + Sync + 'static> {
    pub(super) word: AtomicU64,
    pub(super) key: u64,
    pub(super) sharing: Sharing,
    pub(super) value: T,
}

impl<T: Send + Sync + 'static> Held<T> {
    /// An object with one use, and without a key yet.
    #[inline(always)]
    pub(super) fn new(sharing: Sharing, value: T) -> Self {
        Self {
            word: AtomicU64::new(Word::ONE_USE.0),
            key: u64::MAX,
            sharing,
            value,
        }
    }

    /// The word alone, without a reference to the rest: other threads may free the object after
    /// this thread's last step.
    ///
    /// # Safety
    /// The object is not freed as long as the reference is used.
    #[inline]
    pub(super) unsafe fn word_of<'a>(held: NonNull<Self>) -> &'a AtomicU64 {
        // SAFETY: the caller's promise; the word is the first field (`repr(C)`).
        unsafe { held.cast::<AtomicU64>().as_ref() }
    }

    /// Releases a use where it is counted. Returns the new word if it was counted there.
    ///
    /// # Safety
    /// The use belongs to the caller, which gives it up. After that the object may be freed.
    #[inline]
    pub(super) unsafe fn release(held: NonNull<Self>) -> Option<Word> {
        // SAFETY: in use, until the step below.
        let word = unsafe { Self::word_of(held) };
        let now = Word(word.load(Ordering::Relaxed));
        if now.is_shared() {
            // SAFETY: as above; the field is in bounds.
            let sharing = unsafe { &raw const (*held.as_ptr()).sharing };
            // SAFETY: the caller's use is the one given up.
            if unsafe { Sharing::release(sharing) } {
                return None;
            }
        }
        // Release: what this user did comes before the object's end. Acquire: so does what all
        // users did, if this step ends it.
        Some(change(word, now, Ordering::AcqRel, Word::released).1)
    }

    /// Frees the object.
    ///
    /// # Safety
    /// It was [`Prepared`](super::Prepared), is in no index, and no thread can reach it any more.
    pub(super) unsafe fn free(held: NonNull<Self>) {
        let held = std::ptr::with_exposed_provenance_mut::<Self>(held.as_ptr().addr());
        // SAFETY: it came from a box, and the caller says that this is its end.
        drop(unsafe { Box::from_raw(held) });
    }

    /// The number under which the index knows it.
    #[inline]
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    #[inline]
    pub(super) fn state(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Is it live? The answer may be outdated when it is returned.
    #[inline]
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.state().is_freeing()
    }

    /// Does releasing the last use make it freeing?
    #[inline]
    #[must_use]
    pub fn is_marked_freeing(&self) -> bool {
        self.state().is_marked_freeing()
    }

    /// References and raw uses together; a snapshot.
    #[must_use]
    pub fn uses(&self) -> u64 {
        let word = self.state();
        let shares = self.sharing.shares().filter(|_| word.is_shared());
        let uses = word.uses() + shares.map_or(0, |shares| shares.sum().uses);
        // Counts that change during the sum may give any result.
        u64::try_from(uses).unwrap_or(0) + word.raw_uses()
    }

    /// Is it in use? Never `false` for an object that is in use throughout the call. While uses are
    /// counted per core no sum of them is certain, so the answer is then `true`.
    #[inline]
    #[must_use]
    pub fn may_be_used(&self) -> bool {
        let word = self.state();
        word.is_shared() || word.uses() > 0 || word.raw_uses() > 0
    }

    /// Has it raw uses? A snapshot; may be `false` while uses are counted per core.
    #[inline]
    #[must_use]
    pub fn has_raw_uses(&self) -> bool {
        self.state().raw_uses() > 0
    }

    /// Counts a use: in the word (`true`) or in a share; `None` if it is freeing.
    #[inline]
    pub(super) fn acquire(&self) -> Option<bool> {
        let now = self.state();
        if now.is_shared() && self.sharing.acquire() {
            return Some(false);
        }
        // Acquire: what was done to the object while it was freeing comes before this use.
        update(&self.word, now, Ordering::Acquire, Word::acquired).map(|_| true)
    }

    /// Notes that this thread reads the object, as it often does, without taking a use. If other
    /// threads count uses in its word meanwhile, which is on the line that is read, uses are
    /// counted per core after a few such notes. Otherwise nothing is written.
    #[inline]
    pub fn note_look(&self) {
        if !self.state().is_shared() && self.sharing.note_look() {
            self.share();
        }
    }

    /// Has its uses counted per core, if it is not about to end.
    #[cold]
    pub(crate) fn share(&self) {
        if self.state().shared().is_none() {
            return;
        }
        if let Some(shares) = self.sharing.make() {
            shares.open(|| {
                update(&self.word, self.state(), Ordering::AcqRel, Word::shared).is_some()
            });
        }
    }

    /// Turns a use into a raw one where it is counted.
    ///
    /// # Safety
    /// As for [`release`](Self::release): the use now belongs to the owner of the raw use.
    #[inline]
    pub(super) unsafe fn make_raw(held: NonNull<Self>) -> Option<Word> {
        // SAFETY: in use, until the step below.
        let word = unsafe { Self::word_of(held) };
        let now = Word(word.load(Ordering::Relaxed));
        if now.is_shared() {
            // SAFETY: as above; the field is in bounds.
            let sharing = unsafe { &raw const (*held.as_ptr()).sharing };
            // SAFETY: the caller's use is the one given up.
            if unsafe { Sharing::make_raw(sharing) } {
                return None;
            }
        }
        // One step, so that the end of the raw use can be the end of the object.
        Some(change(word, now, Ordering::AcqRel, Word::made_raw).1)
    }

    /// Raw uses counted here; `None` if it has left its index, where they are counted then. A
    /// snapshot, exact only while none is added or given back.
    #[must_use]
    pub fn raw_uses(&self) -> Option<u64> {
        let word = self.state();
        let shares = self.sharing.shares().filter(|_| word.is_shared());
        let counted = shares.map_or(0, |shares| shares.sum().raw);
        (!word.is_freed()).then(|| word.raw_uses() + counted)
    }

    /// May it have raw uses that are counted here? Never `Some(false)` for an object that has some;
    /// `None` if it has left its index.
    #[must_use]
    pub fn may_have_raw_uses(&self) -> Option<bool> {
        let word = self.state();
        (!word.is_freed()).then(|| word.is_shared() || word.raw_uses() > 0)
    }

    /// Asks to be woken when it is freeing no longer; `false` if that is so already.
    pub(super) fn mark_awaited(&self) -> bool {
        let marked = update(&self.word, self.state(), Ordering::AcqRel, Word::awaited).is_some();
        if !marked {
            // Acquire: if it was taken out, the next lookup sees its slot empty.
            self.word.load(Ordering::Acquire);
        }
        marked
    }
}

/// Replaces the word, last seen as `before`, by the result of `step`. Returns both; `None` if
/// `step` refuses.
///
/// It takes the word alone: once the new one is stored, other threads may free the object.
#[inline]
pub(super) fn update(
    word: &AtomicU64,
    mut before: Word,
    order: Ordering,
    step: impl Fn(Word) -> Option<Word>,
) -> Option<(Word, Word)> {
    loop {
        let after = step(before)?;
        match word.compare_exchange_weak(before.0, after.0, order, Ordering::Relaxed) {
            Ok(_) => return Some((before, after)),
            Err(now) => before = Word(now),
        }
    }
}

/// As [`update`], for steps that are never refused.
#[inline]
pub(super) fn change(
    word: &AtomicU64,
    before: Word,
    order: Ordering,
    step: impl Fn(Word) -> Word,
) -> (Word, Word) {
    update(word, before, order, |word| Some(step(word))).expect("never refused")
}

impl<T: Send + Sync + 'static> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("key", &self.key)
            .field("word", &self.state())
            .field("value", &self.value)
            .finish()
    }
}
