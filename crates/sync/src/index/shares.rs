//! Counting the uses of an object that several threads use at once, each core for itself.
//!
//! An object starts with its uses in its word. When its users change from thread to thread a few
//! times, it becomes *shared*: a use is then counted on the user's core, and given back on the core
//! of whoever does that, so a single count says nothing, and may be negative. Dooming or evicting
//! the object first *closes* the counts one by one, adding them up in the word, where the last use
//! to go is seen. A raw use is counted here as a use, and besides as a raw one, so that it can be told
//! apart; it is given back where it is counted, which is nearly always on the core of whoever does that.
//!
//! *Invariants.*
//! - A count that is open belongs to an object whose word is marked as shared: the mark comes before
//!   the first count is opened, and goes after the last one was closed. So a use that was counted
//!   here, or given back here, is in the sum that the word gets.
//! - Raw uses are given back from the counts, or from the word, in which they are. Whoever does not find
//!   enough in his own count looks for them with `mode` locked, when none are on the way to the word.
//! - Each count is closed by one exchange with its value, and changes no more until it is opened.
//! - Shares live as long as their object, and there are at most `BYTES_MAX` of them.
//!
//! *Locking.* `mode` orders those who share and those who close; a leaf, only atomics are touched
//! under it.
#![expect(unsafe_code, reason = "a pointer that shares its word with a tally")]

use crate::padded::Padded;
use crate::per_core::PerCore;
use crate::primitive::{AtomicPtr, AtomicU64, Mutex, Ordering, SHARED_AFTER};
use crate::thread_slot::thread_slot;
use std::iter::Sum;
use std::ptr;
use std::sync::atomic::AtomicUsize;

// A count: bit 63 says that it is closed, below are 15 bits of raw uses and 48 of uses, raw ones
// included, as the distance from ZERO.

/// No count may be changed: uses go to the word.
const CLOSED: u64 = 1 << 63;
const RAW_SHIFT: u32 = 48;
const RAW_USE: u64 = 1 << RAW_SHIFT;
const RAW_MAX: u64 = (1 << 15) - 1;
const USES: u64 = RAW_USE - 1;
/// A count of nothing. Ends of the range are 2^47 steps away, years of nothing else; there the uses go
/// to the word.
const ZERO: u64 = 1 << (RAW_SHIFT - 1);

/// What counts stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Uses, raw ones included. Of one count it may be negative.
    pub(super) uses: i64,
    /// Raw uses among them.
    pub(super) raw: u64,
}

impl Counted {
    fn of(count: u64) -> Self {
        if count & CLOSED == 0 {
            Self {
                uses: (count & USES) as i64 - ZERO as i64,
                raw: raw_of(count),
            }
        } else {
            Self::default()
        }
    }
}

impl Sum for Counted {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, count| Self {
            uses: sum.uses + count.uses,
            raw: sum.raw + count.raw,
        })
    }
}

fn raw_of(count: u64) -> u64 {
    count >> RAW_SHIFT & RAW_MAX
}

/// One use more.
fn acquired(count: u64) -> Option<u64> {
    (count & USES < USES).then(|| count + 1)
}

/// One use less.
fn released(count: u64) -> Option<u64> {
    (count & USES > 0).then(|| count - 1)
}

/// A use turned into a raw one.
fn made_raw(count: u64) -> Option<u64> {
    (raw_of(count) < RAW_MAX).then(|| count + RAW_USE)
}

/// `n` raw uses less, all or none.
fn forgotten(count: u64, n: u64) -> Option<u64> {
    (n <= raw_of(count) && n <= count & USES).then(|| count - n * RAW_USE - n)
}

/// Objects that are used by many threads are few. Others stay as they were, only slower.
const BYTES_MAX: usize = 16 << 20;

/// Of all shares in the process.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Counts of uses, one for each core.
pub(super) struct Shares {
    counts: PerCore<AtomicU64>,
    mode: Mutex<()>,
    // As in `Sharing`, whose place for it the shares have taken.
    tally: AtomicUsize,
    bytes: usize,
}

impl Shares {
    fn new() -> Box<Self> {
        let counts = PerCore::new(|| AtomicU64::new(CLOSED));
        let bytes = size_of::<Self>() + counts.iter().count() * size_of::<Padded<AtomicU64>>();
        BYTES.fetch_add(bytes, Ordering::Relaxed);
        Box::new(Self {
            counts,
            mode: Mutex::new(()),
            tally: AtomicUsize::new(0),
            bytes,
        })
    }

    /// Marks the word by `mark`, and opens the counts if that says yes.
    pub(super) fn open(&self, mark: impl FnOnce() -> bool) {
        let _mode = self.mode.lock();
        if mark() {
            for count in self.counts.iter() {
                // Release: the mark comes before whatever is counted.
                count.store(ZERO, Ordering::Release);
            }
        }
    }

    /// Closes the counts, and has `settle` put their sum into the word; if they are open, as
    /// `is_open` knows under the lock.
    pub(super) fn close<R>(
        &self,
        is_open: impl FnOnce() -> bool,
        settle: impl FnOnce(Counted) -> R,
    ) -> Option<R> {
        let _mode = self.mode.lock();
        is_open().then(|| {
            // Acquire: what was done under the uses that were given back here.
            let close = |count: &AtomicU64| Counted::of(count.swap(CLOSED, Ordering::AcqRel));
            settle(self.counts.iter().map(close).sum())
        })
    }

    /// As `Sharing::note`, for an object that has shares and does not use them now.
    fn note(&self, mine: usize) -> bool {
        let tally = self.tally.load(Ordering::Relaxed);
        if is_of(tally, mine) {
            return false;
        }
        let next = changed(tally, mine);
        // Uses noted at the same time may overwrite each other: it is a guess in any case.
        self.tally.store(next.unwrap_or(mine), Ordering::Relaxed);
        next.is_none()
    }

    /// The sum of the counts; a snapshot of each.
    pub(super) fn sum(&self) -> Counted {
        self.counts
            .iter()
            .map(|count| Counted::of(count.load(Ordering::Relaxed)))
            .sum()
    }

    /// Gives back up to `n` raw uses, wherever they are counted, and has `rest` give back what is left of
    /// them from the word. The object may have ended after that, unless the caller keeps it.
    #[cold]
    fn forget<R>(&self, n: u64, rest: impl FnOnce(u64) -> R) -> R {
        let _mode = self.mode.lock();
        let mut left = n;
        for count in self.counts.iter() {
            let mut taken = 0;
            // Release: what was done under these uses comes before the closing.
            step(count, Ordering::Release, |count| {
                taken = raw_of(count).min(left).min(count & USES);
                forgotten(count, taken)
            });
            left -= taken;
        }
        rest(left)
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Changes a count; `false` if it is closed, or `change` refuses.
///
/// After a step down the object may be gone: the count is all that may be touched here.
#[inline]
fn step(count: &AtomicU64, order: Ordering, mut change: impl FnMut(u64) -> Option<u64>) -> bool {
    let mut before = count.load(Ordering::Relaxed);
    while before & CLOSED == 0 {
        let Some(after) = change(before) else {
            return false;
        };
        match count.compare_exchange_weak(before, after, order, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
    false
}

/// In a tally: the last one only looked. Another look changes nothing then: looks alone disturb nobody.
const LOOK: usize = 1 << 15;
/// In a tally, behind its mark: the changes so far.
const CHANGES: usize = 0x3fff;

/// An object's shares, or the tally that tells whether it should have some: the thread that used it
/// (or looked at it) last, and how often that changed.
pub(super) struct Sharing {
    // Null, a tally (odd), or shares from a box.
    state: AtomicPtr<Shares>,
}

/// A tally that begins with this thread: odd, and without changes.
#[inline]
fn begin() -> usize {
    thread_slot() << 16 | 1
}

/// A tally after a use by this thread, from one in which `mine` is not the last user; `None` if it
/// has seen enough changes.
fn changed(tally: usize, mine: usize) -> Option<usize> {
    let changes = if tally == 0 {
        0
    } else {
        (tally >> 1 & CHANGES) + 1
    };
    (changes < SHARED_AFTER).then_some(mine | changes << 1)
}

/// Are there shares, rather than nothing or a tally?
#[inline]
fn is_shares(state: *mut Shares) -> bool {
    !state.is_null() && state.addr() & 1 == 0
}

/// Is `tally` of the same user as the new tally `mine`?
#[inline]
fn is_of(tally: usize, mine: usize) -> bool {
    tally >> 16 == mine >> 16 && tally & 1 == 1
}

impl Sharing {
    pub(super) fn none() -> Self {
        Self {
            state: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The tally of an object that this thread makes, and is the first to use: noted now, where its next use would
    /// take an exchange to note it.
    #[inline]
    pub(super) fn begun() -> Self {
        Self {
            state: AtomicPtr::new(ptr::without_provenance_mut(begin())),
        }
    }

    /// The slot of the thread that used the object last, if only one has used it lately.
    pub(super) fn user(&self) -> Option<usize> {
        let tally = self.state.load(Ordering::Relaxed).addr();
        (tally & 1 == 1).then_some(tally >> 16)
    }

    /// The shares, if there are any yet.
    #[inline]
    pub(super) fn shares(&self) -> Option<&Shares> {
        // Acquire: they are built before they are published.
        let state = self.state.load(Ordering::Acquire);
        // SAFETY: neither null nor a tally, so it is a box that stays as long as `self`.
        is_shares(state).then(|| unsafe { &*state })
    }

    /// Counts a use here; `false` if it has to go to the word.
    #[inline]
    pub(super) fn acquire(&self) -> bool {
        self.shares()
            // Acquire: what was done to the object before it was shared.
            .is_some_and(|shares| step(shares.counts.mine(), Ordering::Acquire, acquired))
    }

    /// Counts a use as given back here; `false` if it has to be taken from the word.
    ///
    /// # Safety
    /// `this` is of an object in use by the caller, which may be freed as soon as this returns
    /// `true`, but not earlier.
    #[inline]
    pub(super) unsafe fn release(this: *const Self) -> bool {
        // SAFETY: the caller's use is counted until the step below, and nothing is read after it.
        let Some(shares) = unsafe { &*this }.shares() else {
            return false;
        };
        let mine = shares.counts.mine();
        // Release: what was done under this use comes before the closing.
        step(mine, Ordering::Release, released)
    }

    /// Counts a use as a raw one from now on; `false` if that has to be done in the word.
    ///
    /// # Safety
    /// As for [`release`](Self::release): somebody else may give the raw use back at once.
    #[inline]
    pub(super) unsafe fn make_raw(this: *const Self) -> bool {
        // SAFETY: the caller's use is counted until the step below, and nothing is read after it.
        let Some(shares) = unsafe { &*this }.shares() else {
            return false;
        };
        let mine = shares.counts.mine();
        // Release: what was done under this use comes before it is given back.
        step(mine, Ordering::Release, made_raw)
    }

    /// Gives back `n` raw uses that are counted on this core; `false` if they are not.
    #[inline]
    pub(super) fn forget(&self, n: u64) -> bool {
        self.shares().is_some_and(|shares| {
            // Release: as for a use.
            step(shares.counts.mine(), Ordering::Release, |count| {
                forgotten(count, n)
            })
        })
    }

    /// Gives back up to `n` raw uses from wherever they are counted, `rest` of them from the word.
    #[inline]
    pub(super) fn forget_anywhere<R>(&self, n: u64, rest: impl FnOnce(u64) -> R) -> R {
        match self.shares() {
            Some(shares) => shares.forget(n, rest),
            None => rest(n),
        }
    }

    /// Notes that this thread got a use of an object that is not shared; should it be?
    #[inline]
    pub(super) fn note(&self) -> bool {
        let mine = begin();
        let state = self.state.load(Ordering::Relaxed);
        !is_of(state.addr(), mine) && self.note_change(mine)
    }

    /// Notes that this thread looks at an object that is not shared, without a use of it; should it
    /// be, because others use it in between?
    #[inline]
    pub(super) fn note_look(&self) -> bool {
        // Acquire: shares are built before they are published.
        let state = self.state.load(Ordering::Acquire);
        if state.is_null() {
            return false;
        }
        let tally = if is_shares(state) {
            // SAFETY: a box that stays as long as `self`.
            unsafe { &*state }.tally.load(Ordering::Relaxed)
        } else {
            state.addr()
        };
        let mine = begin() | LOOK;
        tally & LOOK == 0 && !is_of(tally, mine) && self.note_change(mine)
    }

    #[cold]
    fn note_change(&self, mine: usize) -> bool {
        // Acquire: shares are built before they are published.
        let state = self.state.load(Ordering::Acquire);
        if is_shares(state) {
            // SAFETY: a box that stays as long as `self`.
            return unsafe { &*state }.note(mine);
        }
        let next = changed(state.addr(), mine);
        let tally = ptr::without_provenance_mut(next.unwrap_or(mine));
        // If it fails, somebody else has noted his use or made shares: one change is not counted.
        let noted = self
            .state
            .compare_exchange(state, tally, Ordering::Relaxed, Ordering::Relaxed);
        noted.is_ok() && next.is_none()
    }

    /// The shares, made if there are none yet and the process may have more.
    pub(super) fn make(&self) -> Option<&Shares> {
        if let Some(shares) = self.shares() {
            return Some(shares);
        }
        if BYTES.load(Ordering::Relaxed) >= BYTES_MAX {
            return None;
        }
        let shares = Box::into_raw(Shares::new());
        let mut tally = self.state.load(Ordering::Acquire);
        loop {
            if is_shares(tally) {
                // SAFETY: made above and never published.
                drop(unsafe { Box::from_raw(shares) });
                return self.shares();
            }
            // Release: built before they are published.
            match self
                .state
                .compare_exchange(tally, shares, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return self.shares(),
                Err(now) => tally = now,
            }
        }
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        // Acquire: whoever made them may be another thread.
        let state = self.state.load(Ordering::Acquire);
        if is_shares(state) {
            // SAFETY: shares come from a box, and nobody else has the object any more.
            drop(unsafe { Box::from_raw(state) });
        }
    }
}
