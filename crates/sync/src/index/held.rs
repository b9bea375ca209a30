//! An object of an index, with the word that decides over its life.
#![expect(unsafe_code, reason = "objects are reached by pointers that count")]

use super::doomed::Doomed;
use super::reference::Ref;
use super::word::Word;
use crate::primitive::{AtomicU64, Ordering};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// An object that an [`Index`](super::Index) holds (or held), by its number.
///
/// It is *live* or *dying*. Live, it has any number of uses: references ([`Ref`]), and *raw* uses,
/// which are counted on behalf of somebody outside who gives them back by number
/// ([`Ref::into_raw`], [`Held::forget`]). A live object without uses stays, until it is evicted or
/// used again. Once *doomed*, the last use to go makes it dying, and so does eviction; then it
/// belongs to the one [`Doomed`] that came of it, and nobody gets a use any more.
///
/// The header takes 24 bytes, and objects are aligned to lines of 64 bytes.
#[repr(C, align(64))]
pub struct Held<T: Send + Sync + 'static> {
    pub(super) word: AtomicU64,
    pub(super) key: u64,
    shares: usize,
    value: T,
}

impl<T: Send + Sync + 'static> Held<T> {
    /// On the heap, with one use: the caller's.
    pub(super) fn with_one_use(key: u64, value: T) -> NonNull<Self> {
        let held = Box::new(Self {
            word: AtomicU64::new(Word::ONE_USE.0),
            key,
            shares: 0,
            value,
        });
        let held = NonNull::from(Box::leak(held));
        // References are made from shared borrows; `free` needs the whole object back.
        let _ = held.as_ptr().expose_provenance();
        held
    }

    /// The word alone, without a reference to the rest, which others may free after one's last step.
    ///
    /// # Safety
    /// The object is not freed as long as the reference is used.
    #[inline]
    pub(super) unsafe fn word_of<'a>(held: NonNull<Self>) -> &'a AtomicU64 {
        // SAFETY: the caller's promise; the word is the first field (`repr(C)`).
        unsafe { held.cast::<AtomicU64>().as_ref() }
    }

    /// Frees the object.
    ///
    /// # Safety
    /// Made by `with_one_use`; in no index, and nobody can reach it any more.
    pub(super) unsafe fn free(held: NonNull<Self>) {
        let held = std::ptr::with_exposed_provenance_mut::<Self>(held.as_ptr().addr());
        // SAFETY: it came from a box, and the caller says that this is its end.
        drop(unsafe { Box::from_raw(held) });
    }

    /// The value of an object that nobody else has ever seen.
    ///
    /// # Safety
    /// Made by `with_one_use`, and not shared with anybody since.
    pub(super) unsafe fn unwrap(held: NonNull<Self>) -> T {
        // SAFETY: it came from a box, and the caller has it to himself.
        let held = unsafe { Box::from_raw(held.as_ptr()) };
        held.value
    }

    /// The number under which the index knows it.
    #[inline]
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    #[inline]
    fn state(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Can uses be had of it? By the time the answer is there it may have changed.
    #[inline]
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.state().is_dying()
    }

    /// Will the last use to go end it?
    #[inline]
    #[must_use]
    pub fn is_doomed(&self) -> bool {
        self.state().is_doomed()
    }

    /// References and raw uses together; a snapshot.
    #[must_use]
    pub fn uses(&self) -> u64 {
        let word = self.state();
        word.uses() + word.raw_uses()
    }

    /// A use, unless it is dying.
    #[inline]
    #[must_use]
    pub fn try_ref(&self) -> Option<Ref<T>> {
        // Acquire: what was done to the object while it was dying comes before this use.
        update(&self.word, Ordering::Acquire, Word::acquired).ok()?;
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// Dooms it: the last use to go ends it, and [`Ref::release`] or [`Held::forget`] then returns
    /// it. If there is no use now, this call ends it (dropping what it returns puts it back, still
    /// doomed).
    pub fn doom(&self) -> Option<Doomed<T>> {
        // Acquire and Release: ending it comes after all that its users have done.
        let (before, after) = change(&self.word, Ordering::AcqRel, Word::doomed);
        self.ended(before, after)
    }

    /// Takes [`Held::doom`] back.
    pub fn spare(&self) {
        change(&self.word, Ordering::AcqRel, Word::spared);
    }

    /// Gives back up to `n` raw uses. `Some` if the last use of a doomed object was among them.
    #[must_use]
    pub fn forget(&self, n: u64) -> Option<Doomed<T>> {
        let (before, after) =
            update(&self.word, Ordering::AcqRel, |word| word.forgotten(n)).ok()?;
        self.ended(before, after)
    }

    /// Ends it, if it is live and has no use at all.
    pub(super) fn evict(&self) -> Option<Doomed<T>> {
        let (before, after) = update(&self.word, Ordering::AcqRel, Word::evicted).ok()?;
        self.ended(before, after)
    }

    fn ended(&self, before: Word, after: Word) -> Option<Doomed<T>> {
        (after.is_dying() && !before.is_dying())
            // SAFETY: it became dying by this very step, so this is the one that owns its end.
            .then(|| unsafe { Doomed::from_end(NonNull::from(self)) })
    }

    /// Asks to be woken when it is dying no longer; `false` if that is over already.
    pub(super) fn mark_awaited(&self) -> bool {
        update(&self.word, Ordering::AcqRel, Word::awaited)
            // Acquire: if it was buried, the next look sees its slot empty.
            .map_err(|_| self.word.load(Ordering::Acquire))
            .is_ok()
    }
}

/// Replaces the word by what `step` makes of it; returns both, or the word that `step` refused.
///
/// It takes the word alone: by the time the new one is seen the rest may be freed.
#[inline]
pub(super) fn update(
    word: &AtomicU64,
    order: Ordering,
    step: impl Fn(Word) -> Option<Word>,
) -> Result<(Word, Word), Word> {
    let mut before = Word(word.load(Ordering::Relaxed));
    loop {
        let Some(after) = step(before) else {
            return Err(before);
        };
        match word.compare_exchange_weak(before.0, after.0, order, Ordering::Relaxed) {
            Ok(_) => return Ok((before, after)),
            Err(now) => before = Word(now),
        }
    }
}

/// As [`update`], for steps that are always possible.
#[inline]
pub(super) fn change(
    word: &AtomicU64,
    order: Ordering,
    step: impl Fn(Word) -> Word,
) -> (Word, Word) {
    match update(word, order, |before| Some(step(before))) {
        Ok(both) => both,
        Err(word) => (word, word),
    }
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
