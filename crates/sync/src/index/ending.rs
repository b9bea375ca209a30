//! How objects become freeing.
#![expect(
    unsafe_code,
    reason = "the step that makes an object freeing owns its end"
)]

use super::freeing::Freeing;
use super::held::{Held, change, update};
use super::word::Word;
use crate::primitive::Ordering;
use std::cell::Cell;
use std::ptr::NonNull;

/// An object has left its index.
#[derive(Debug)]
pub(super) struct Freed;

impl<T: Send + Sync + 'static> Held<T> {
    /// Marks it: the release of its last use makes it freeing, and [`Ref::release`] or
    /// [`Held::forget`] returns the [`Freeing`]. If it has no use now, this call does so. A dropped
    /// `Freeing` makes it live again, still marked.
    ///
    /// [`Ref::release`]: super::Ref::release
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

    fn ended(&self, (before, after): (Word, Word)) -> Option<Freeing<T>> {
        (after.is_freeing() && !before.is_freeing())
            // SAFETY: this step made it freeing, so this `Freeing` is the only one.
            .then(|| unsafe { Freeing::from_end(NonNull::from(self)) })
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
}
