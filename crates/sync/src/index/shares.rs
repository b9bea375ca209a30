//! Counting the uses of an object that several threads use at once, each core for itself.
//!
//! An object starts with its uses in its word. When its users change from thread to thread a few
//! times, it becomes *shared*: a use is then counted on the user's core, and given back on the core
//! of whoever does that, so a single count says nothing, and may be negative. Dooming or evicting
//! the object first *closes* the counts one by one, adding them up in the word, where the last use
//! to go is seen.
//!
//! *Invariants.*
//! - A count that is open belongs to an object whose word is marked as shared: the mark comes before
//!   the first count is opened, and goes after the last one was closed. So a use that was counted
//!   here, or given back here, is in the sum that the word gets.
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
use std::ptr;
use std::sync::atomic::AtomicUsize;

/// No count may be changed: uses go to the word.
const CLOSED: u64 = 1 << 63;
/// A count of nothing. Ends of the range are 2^62 steps away, more than anybody can take.
const ZERO: u64 = 1 << 62;

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
        settle: impl FnOnce(i64) -> R,
    ) -> Option<R> {
        let _mode = self.mode.lock();
        is_open().then(|| {
            // Acquire: what was done under the uses that were given back here.
            let close = |count: &AtomicU64| value(count.swap(CLOSED, Ordering::AcqRel));
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
    pub(super) fn sum(&self) -> i64 {
        self.counts
            .iter()
            .map(|count| value(count.load(Ordering::Relaxed)))
            .sum()
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What a count stands for.
fn value(count: u64) -> i64 {
    if count & CLOSED == 0 {
        count.wrapping_sub(ZERO) as i64
    } else {
        0
    }
}

/// Counts one step, up or down; `false` if the count is closed.
///
/// After a step down the object may be gone: the count is all that may be touched here.
#[inline]
fn count(count: &AtomicU64, step: u64, order: Ordering) -> bool {
    let mut before = count.load(Ordering::Relaxed);
    while before & CLOSED == 0 {
        let after = before.wrapping_add(step);
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
            .is_some_and(|shares| count(shares.counts.mine(), 1, Ordering::Acquire))
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
        count(mine, u64::MAX, Ordering::Release)
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
