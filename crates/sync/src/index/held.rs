//! An object of an index, with the word that holds its state and its uses.
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
#[repr(C, align(64))]
pub struct Held<T: Send + Sync + 'static> {
    pub(super) word: AtomicU64,
    pub(super) key: u64,
    sharing: Sharing,
    value: T,
}

/// An object has left its index.
#[derive(Debug)]
pub(super) struct Freed;

/// Where the second line of an object begins.
const LINE: usize = 64;

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

    pub(super) fn into_value(self) -> T {
        self.value
    }

    pub(super) fn value(&self) -> &T {
        &self.value
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

    /// Leaves the object to its users, or frees it if it has none.
    ///
    /// # Safety
    /// It was just taken out of its index, in which no thread can find it any more: only a
    /// reference or a `Freeing` leads to it.
    pub(super) unsafe fn detach(held: NonNull<Self>) {
        // SAFETY: its users free it only after it is detached, below.
        let this = unsafe { held.as_ref() };
        // Acquire: all that was done under the last use.
        if Word(this.word.load(Ordering::Acquire)).is_unreferenced() {
            // SAFETY: there is no reference, and without an index there will be none.
            return unsafe { Self::free(held) };
        }
        let end = loop {
            let end = this.unshare();
            // A thread with a reference may make it shared again.
            let step = |word: Word| (!word.is_shared()).then(|| word.detached());
            // SAFETY: as above.
            let word = unsafe { Self::word_of(held) };
            if let Some((before, after)) = update(word, this.state(), Ordering::AcqRel, step) {
                // SAFETY: this step made it freeing, and only one step does that.
                let new = (after.is_freeing() && !before.is_freeing())
                    .then(|| unsafe { Freeing::from_end(held) });
                break end.or(new);
            }
        };
        drop(end);
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

    /// A use, unless it is freeing.
    #[inline]
    #[must_use]
    pub fn try_ref(&self) -> Option<Ref<T>> {
        // A user will look at the rest as well; without the prefetch that load waits for the
        // exchange.
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(LINE));
        if self.acquire()? && self.sharing.note() {
            self.share();
        }
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// As [`Held::try_ref`], for a scan over all objects: its use does not count as a sign that
    /// several threads use this one.
    #[inline]
    #[must_use]
    pub fn try_ref_in_passing(&self) -> Option<Ref<T>> {
        self.acquire()?;
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// Counts a use: in the word (`true`) or in a share; `None` if it is freeing.
    #[inline]
    fn acquire(&self) -> Option<bool> {
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

    /// Has its uses counted in the word again. `Some` if that showed a marked object without uses.
    #[cold]
    pub(super) fn unshare(&self) -> Option<Freeing<T>> {
        // Acquire: the shares are older than the mark in the word.
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

    /// Marks it: the release of its last use makes it freeing, and [`Ref::release`] or
    /// [`Held::forget`] returns the [`Freeing`]. If it has no use now, this call does so. A dropped
    /// `Freeing` makes it live again, still marked.
    pub fn mark_freeing(&self) -> Option<Freeing<T>> {
        // Acquire and Release: its end comes after all that its users have done.
        let steps = change(&self.word, self.state(), Ordering::AcqRel, Word::marked);
        if steps.1.is_shared() {
            return self.unshare();
        }
        self.ended(steps)
    }

    /// Takes [`Held::mark_freeing`] back.
    pub fn unmark_freeing(&self) {
        change(&self.word, self.state(), Ordering::AcqRel, Word::unmarked);
    }

    /// Gives back up to `n` raw uses. `Some` if the last use of a marked object was among them. Of
    /// an object that has left its index nothing is given back here.
    #[must_use = "a marked object that is not freed stays in its index"]
    pub fn forget(&self, n: u64) -> Option<Freeing<T>> {
        self.try_forget(n).ok().flatten()
    }

    /// As [`Held::forget`].
    ///
    /// # Errors
    /// The object has left its index: its raw uses are counted elsewhere.
    pub(super) fn try_forget(&self, n: u64) -> Result<Option<Freeing<T>>, Freed> {
        if self.state().is_shared() && self.sharing.forget(n) {
            return Ok(None);
        }
        let last = Cell::new(self.state());
        let steps = self.sharing.forget_anywhere(n, |n| {
            let step = |word: Word| {
                last.set(word);
                word.forgotten(n)
            };
            // Loaded again: raw uses of shares may have moved to the word.
            update(&self.word, self.state(), Ordering::AcqRel, step)
        });
        match steps {
            Some(steps) => Ok(self.ended(steps)),
            None if last.get().is_freed() => Err(Freed),
            None => Ok(None),
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

    /// Makes it freeing, if it is live and has no use at all.
    pub(super) fn evict(&self) -> Option<Freeing<T>> {
        if self.state().is_shared() {
            // An object in steady use shall not have its counts closed in vain.
            let unused = self.uses() == 0;
            let ended = unused.then(|| self.unshare())?;
            if ended.is_some() {
                return ended;
            }
        }
        let steps = update(&self.word, self.state(), Ordering::AcqRel, Word::evicted)?;
        self.ended(steps)
    }

    /// Makes it freeing, if it is live and has no reference. Raw uses are kept until it is taken
    /// out.
    pub(super) fn evict_though_held(&self) -> Option<Freeing<T>> {
        let word = self.state();
        if word.is_shared() {
            let counted = self.sharing.shares().map(|shares| shares.sum());
            let counted = counted.unwrap_or_default();
            // Shares count raw uses as uses too. As in `evict`, this is a guess.
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

    fn ended(&self, (before, after): (Word, Word)) -> Option<Freeing<T>> {
        (after.is_freeing() && !before.is_freeing())
            // SAFETY: this step made it freeing, so this `Freeing` is the only one.
            .then(|| unsafe { Freeing::from_end(NonNull::from(self)) })
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
