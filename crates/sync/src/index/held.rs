//! An object of an index, with the word that decides over its life.
#![expect(unsafe_code, reason = "objects are reached by pointers that count")]

use super::freeing::Freeing;
use super::reference::Ref;
use super::shares::Sharing;
use super::word::Word;
use crate::prefetch::prefetch;
use crate::primitive::{AtomicU64, Ordering};
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// An object that an [`Index`](super::Index) holds (or held), by its number.
///
/// It is *live* or *dying*. Live, it has any number of uses: references ([`Ref`]), and *raw* uses,
/// which are counted on behalf of somebody outside who gives them back by number
/// ([`Ref::into_raw`], [`Held::forget`]). A live object without uses stays, until it is evicted or
/// used again. Once *doomed*, the last use to go makes it dying, and so does eviction; then it
/// belongs to the one [`Freeing`] that came of it, and nobody gets a use any more.
///
/// Uses are counted in the object, or, once threads use it in turn, by each core for itself.
///
/// The header takes 24 bytes, and objects are aligned to lines of 64 bytes.
#[repr(C, align(64))]
pub struct Held<T: Send + Sync + 'static> {
    pub(super) word: AtomicU64,
    pub(super) key: u64,
    sharing: Sharing,
    value: T,
}

/// An object has left its index.
#[derive(Debug)]
pub(super) struct Buried;

/// Where the second line of an object begins.
const LINE: usize = 64;

impl<T: Send + Sync + 'static> Held<T> {
    /// One with one use, whose key nobody has set.
    #[inline(always)]
    pub(super) fn unborn(sharing: Sharing, value: T) -> Self {
        Self {
            word: AtomicU64::new(Word::ONE_USE.0),
            key: u64::MAX,
            sharing,
            value,
        }
    }

    /// Nobody uses it from the start.
    #[inline]
    pub(super) fn forget_tally(&mut self) {
        self.sharing = Sharing::none();
    }

    pub(super) fn into_value(self) -> T {
        self.value
    }

    pub(super) fn value(&self) -> &T {
        &self.value
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

    /// Gives a use back where it is counted; `Some` with the new word if that was there.
    ///
    /// # Safety
    /// The caller gives up a use of his own. After that the object may be freed.
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
        // Release: what this user did comes before the end of the object; Acquire: what all users
        // did, if the end is this one's to make.
        Some(change(word, now, Ordering::AcqRel, Word::released).1)
    }

    /// Frees the object.
    ///
    /// # Safety
    /// It was [`Prepared`](super::Prepared); in no index, and nobody can reach it any more.
    pub(super) unsafe fn free(held: NonNull<Self>) {
        let held = std::ptr::with_exposed_provenance_mut::<Self>(held.as_ptr().addr());
        // SAFETY: it came from a box, and the caller says that this is its end.
        drop(unsafe { Box::from_raw(held) });
    }

    /// Leaves the object to its users, or frees it if it has none.
    ///
    /// # Safety
    /// It was in an index just now and is in none any more; nobody has met it but by a reference
    /// or a `Freeing`, or will.
    pub(super) unsafe fn detach(held: NonNull<Self>) {
        // SAFETY: whoever might free it does so only once it is marked as detached.
        let this = unsafe { held.as_ref() };
        // Acquire: all that was done under the last use.
        if Word(this.word.load(Ordering::Acquire)).is_unreferenced() {
            // SAFETY: nobody has it, and its index is gone: nobody will.
            return unsafe { Self::free(held) };
        }
        let end = loop {
            let end = this.unshare();
            // Somebody who has a reference may make it shared again.
            let step = |word: Word| (!word.is_shared()).then(|| word.detached());
            // SAFETY: as above.
            let word = unsafe { Self::word_of(held) };
            if let Some((before, after)) = update(word, this.state(), Ordering::AcqRel, step) {
                // SAFETY: it became dying by this step, which is the only one to do that.
                let new = (after.is_dying() && !before.is_dying())
                    .then(|| unsafe { Freeing::from_end(held) });
                break end.or(new);
            }
        };
        drop(end);
    }

    /// The slot of the thread that has used it last, as far as that was noted: at first it is who made it.
    ///
    /// # Safety
    /// The object is not freed meanwhile.
    pub(super) unsafe fn user_of(held: NonNull<Self>) -> Option<usize> {
        // SAFETY: the caller's promise.
        unsafe { held.as_ref() }.sharing.user()
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

    /// Can uses be had of it? By the time the answer is there it may have changed.
    #[inline]
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.state().is_dying()
    }

    /// Will the last use to go end it?
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
        // A sum of counts that change meanwhile may be anything.
        u64::try_from(uses).unwrap_or(0) + word.raw_uses()
    }

    /// Is somebody using it? Never `false` of an object that is in use throughout. While uses are
    /// counted by core no sum of them is sure, so the answer is `true` then.
    #[inline]
    #[must_use]
    pub fn may_be_used(&self) -> bool {
        let word = self.state();
        word.is_shared() || word.uses() > 0 || word.raw_uses() > 0
    }

    /// Has it raw uses? A snapshot; may be `false` while uses are counted by core.
    #[inline]
    #[must_use]
    pub fn has_raw_uses(&self) -> bool {
        self.state().raw_uses() > 0
    }

    /// A use, unless it is dying.
    #[inline]
    #[must_use]
    pub fn try_ref(&self) -> Option<Ref<T>> {
        // Who takes a use means to look at the rest as well, which the exchange would let wait.
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(LINE));
        if self.acquire()? && self.sharing.note() {
            self.share();
        }
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// As [`Held::try_ref`], for whoever comes by all objects and will not come back soon: it is no sign
    /// that several threads use this one.
    #[inline]
    #[must_use]
    pub fn try_ref_in_passing(&self) -> Option<Ref<T>> {
        self.acquire()?;
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// Counts a use: in the word (`true`), or beside it; `None` if it is dying.
    #[inline]
    fn acquire(&self) -> Option<bool> {
        let now = self.state();
        if now.is_shared() && self.sharing.acquire() {
            return Some(false);
        }
        // Acquire: what was done to the object while it was dying comes before this use.
        update(&self.word, now, Ordering::Acquire, Word::acquired).map(|_| true)
    }

    /// Says that this thread looks at the object, as it often does, without taking a use. If others
    /// count uses in its word meanwhile, which is in the line that is looked at, they count elsewhere
    /// after a few such looks. Else nothing is written.
    #[inline]
    pub fn note_look(&self) {
        if !self.state().is_shared() && self.sharing.note_look() {
            self.share();
        }
    }

    /// Has its uses counted by each core for itself, if it is not about to end.
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

    /// Has its uses counted in the word again. `Some` if that showed that a doomed object has none.
    #[cold]
    pub(super) fn unshare(&self) -> Option<Freeing<T>> {
        // Acquire: whoever has seen the mark finds the shares, which were there before.
        self.word.load(Ordering::Acquire);
        let shares = self.sharing.shares()?;
        // Only under the lock of the shares does the word become shared or cease to be.
        let steps = shares.close(
            || self.state().is_shared(),
            |more| {
                change(&self.word, self.state(), Ordering::AcqRel, |word| {
                    word.unshared(more)
                })
            },
        );
        steps.and_then(|steps| self.ended(steps))
    }

    /// Dooms it: the last use to go ends it, and [`Ref::release`] or [`Held::forget`] then returns
    /// it. If there is no use now, this call ends it (dropping what it returns puts it back, still
    /// doomed).
    pub fn mark_freeing(&self) -> Option<Freeing<T>> {
        // Acquire and Release: ending it comes after all that its users have done.
        let steps = change(&self.word, self.state(), Ordering::AcqRel, Word::freeing);
        if steps.1.is_shared() {
            return self.unshare();
        }
        self.ended(steps)
    }

    /// Takes [`Held::mark_freeing`] back.
    pub fn unmark_freeing(&self) {
        change(&self.word, self.state(), Ordering::AcqRel, Word::spared);
    }

    /// Gives back up to `n` raw uses. `Some` if the last use of a doomed object was among them. Of one that has
    /// left its index nothing is given back here.
    #[must_use = "a doomed object that nobody ends stays in its index"]
    pub fn forget(&self, n: u64) -> Option<Freeing<T>> {
        self.try_forget(n).ok().flatten()
    }

    /// As [`Held::forget`].
    ///
    /// # Errors
    /// The object has left its index: its raw uses are counted elsewhere.
    pub(super) fn try_forget(&self, n: u64) -> Result<Option<Freeing<T>>, Buried> {
        if self.state().is_shared() && self.sharing.forget(n) {
            return Ok(None);
        }
        let last = Cell::new(self.state());
        let steps = self.sharing.forget_anywhere(n, |n| {
            let step = |word: Word| {
                last.set(word);
                word.forgotten(n)
            };
            // Looked at anew: by now raw uses of shares may have come to the word.
            update(&self.word, self.state(), Ordering::AcqRel, step)
        });
        match steps {
            Some(steps) => Ok(self.ended(steps)),
            None if last.get().is_buried() => Err(Buried),
            None => Ok(None),
        }
    }

    /// Turns a use into a raw one where it is counted.
    ///
    /// # Safety
    /// As for [`release`](Self::release): the use is given up to whoever gives the raw one back.
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
        // One step, so that whoever gives the raw use back is the last, if nobody else is.
        Some(change(word, now, Ordering::AcqRel, Word::made_raw).1)
    }

    /// Ends it, if it is live and has no use at all.
    pub(super) fn evict(&self) -> Option<Freeing<T>> {
        if self.state().is_shared() {
            // Those who use it all the time shall not have their counts closed for nothing.
            let unused = self.uses() == 0;
            let ended = unused.then(|| self.unshare())?;
            if ended.is_some() {
                return ended;
            }
        }
        let steps = update(&self.word, self.state(), Ordering::AcqRel, Word::evicted)?;
        self.ended(steps)
    }

    /// Ends it, if it is live and has no reference. Raw uses are kept until it is buried.
    pub(super) fn evict_though_held(&self) -> Option<Freeing<T>> {
        let word = self.state();
        if word.is_shared() {
            let counted = self.sharing.shares().map(|shares| shares.sum());
            let counted = counted.unwrap_or_default();
            // Raw uses are uses as well, there. As in `evict`: a guess.
            let references = word.uses() + counted.uses - counted.raw.cast_signed();
            let end = (references == 0).then(|| self.unshare())?;
            if end.is_some() {
                return end;
            }
        }
        let step = Word::evicted_though_held;
        let steps = update(&self.word, self.state(), Ordering::AcqRel, step)?;
        self.ended(steps)
    }

    /// Raw uses that are counted here; `None`: it has left its index, and they are counted elsewhere. A snapshot, and exact only
    /// while none comes or goes.
    #[must_use]
    pub fn raw_uses(&self) -> Option<u64> {
        let word = self.state();
        let shares = self.sharing.shares().filter(|_| word.is_shared());
        let counted = shares.map_or(0, |shares| shares.sum().raw);
        (!word.is_buried()).then(|| word.raw_uses() + counted)
    }

    /// May it have raw uses, counted here? Never `Some(false)` of an object that has some; `None`: it has left its index.
    #[must_use]
    pub fn may_have_raw_uses(&self) -> Option<bool> {
        let word = self.state();
        (!word.is_buried()).then(|| word.is_shared() || word.raw_uses() > 0)
    }

    fn ended(&self, (before, after): (Word, Word)) -> Option<Freeing<T>> {
        (after.is_dying() && !before.is_dying())
            // SAFETY: it became dying by this very step, so this is the one that owns its end.
            .then(|| unsafe { Freeing::from_end(NonNull::from(self)) })
    }

    /// Asks to be woken when it is dying no longer; `false` if that is over already.
    pub(super) fn mark_awaited(&self) -> bool {
        let marked = update(&self.word, self.state(), Ordering::AcqRel, Word::awaited).is_some();
        if !marked {
            // Acquire: if it was buried, the next look sees its slot empty.
            self.word.load(Ordering::Acquire);
        }
        marked
    }
}

/// Replaces the word, last seen as `before`, by what `step` makes of it. Returns both; `None` if
/// `step` refuses.
///
/// It takes the word alone: once the new one is there, others may free the rest.
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
    mut before: Word,
    order: Ordering,
    step: impl Fn(Word) -> Word,
) -> (Word, Word) {
    loop {
        let after = step(before);
        match word.compare_exchange_weak(before.0, after.0, order, Ordering::Relaxed) {
            Ok(_) => return (before, after),
            Err(now) => before = Word(now),
        }
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
