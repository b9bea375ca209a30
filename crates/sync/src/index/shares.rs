//! Per-core counts of the uses of an object that several threads use at once.
//!
//! An object starts with its uses in its word. When its users have changed from thread to thread a
//! few times, it becomes *shared*. A use is then counted on the user's core, and released on the
//! core of the thread that releases it. So a single count means nothing, and may be negative.
//! Marking or evicting the object first *closes* the counts one by one and adds them up in the
//! word, where the release of the last use is seen. A raw use is counted as a use and also as a raw
//! one. It is given back where it was counted, which is nearly always the core of the thread that
//! gives it back.
//!
//! *Invariants.*
//! - An open count belongs to an object with the bit `SHARED` in its word. The bit is set before
//!   the first count opens, and cleared after the last one was closed. So the sum that the word
//!   gets contains every use counted or released here.
//! - Raw uses are given back from the counts or from the word, wherever they are. A thread that
//!   does not find enough in its own count looks for them with `mode` locked, when none are moving
//!   to the word.
//! - Each count is closed by one exchange of its value, and does not change until it is opened.
//! - Shares live as long as their object, and take at most `BYTES_MAX` in the process.
//!
//! *Locking.* `mode` orders opening and closing; a leaf. Under it only atomics are touched.
#![expect(unsafe_code, reason = "a pointer that shares its word with a affinity")]

use crate::padded::Padded;
use crate::per_core::PerCore;
use crate::primitive::{AtomicPtr, AtomicU64, Mutex, Ordering, SHARED_AFTER};
use crate::thread_slot::thread_slot;
use std::iter::Sum;
use std::ptr;
use std::sync::atomic::AtomicUsize;

// A count: bit 63 says that it is closed. Below are 15 bits of raw uses, and 48 of uses, raw ones
// included, as the distance from ZERO.

/// The count may not be changed: uses go to the word.
const CLOSED: u64 = 1 << 63;
const RAW_SHIFT: u32 = 48;
const RAW_USE: u64 = 1 << RAW_SHIFT;
const RAW_MAX: u64 = (1 << 15) - 1;
const USES: u64 = RAW_USE - 1;
/// A count of nothing. The ends of the range are 2^47 steps away, which takes years; beyond them
/// uses go to the word.
const ZERO: u64 = 1 << (RAW_SHIFT - 1);

/// What counts stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Uses, raw ones included. That of one count may be negative.
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

/// Few objects are used by many threads. Beyond this limit uses stay in the word, which is only
/// slower.
const BYTES_MAX: usize = 16 << 20;

/// Bytes of all shares in the process.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Counts of uses, one for each core.
pub(super) struct Shares {
    counts: PerCore<AtomicU64>,
    mode: Mutex<()>,
    // As in `Sharing`, where the pointer to the shares has taken its place.
    affinity: AtomicUsize,
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
            affinity: AtomicUsize::new(0),
            bytes,
        })
    }

    /// Calls `mark` to mark the word, and opens the counts if that returns `true`.
    pub(super) fn open(&self, mark: impl FnOnce() -> bool) {
        let _mode = self.mode.lock();
        if mark() {
            for count in self.counts.iter() {
                // Release: the mark comes before anything that is counted.
                count.store(ZERO, Ordering::Release);
            }
        }
    }

    /// Closes the counts if `is_open`, and calls `add` to put their sum into the word.
    pub(super) fn close<R>(
        &self,
        is_open: impl FnOnce() -> bool,
        add: impl FnOnce(Counted) -> R,
    ) -> Option<R> {
        let _mode = self.mode.lock();
        is_open().then(|| {
            // Acquire: what was done under the uses that were released here.
            let close = |count: &AtomicU64| Counted::of(count.swap(CLOSED, Ordering::AcqRel));
            add(self.counts.iter().map(close).sum())
        })
    }

    /// As `Sharing::note`, for an object that has shares but counts in its word.
    fn note(&self, mine: usize) -> bool {
        let affinity = self.affinity.load(Ordering::Relaxed);
        if is_of(affinity, mine) {
            return false;
        }
        let next = changed(affinity, mine);
        // Notes of two threads at once may overwrite each other: an affinity is a guess.
        self.affinity.store(next.unwrap_or(mine), Ordering::Relaxed);
        next.is_none()
    }

    /// The sum of the counts; a snapshot of each.
    pub(super) fn sum(&self) -> Counted {
        self.counts
            .iter()
            .map(|count| Counted::of(count.load(Ordering::Relaxed)))
            .sum()
    }

    /// Gives back up to `n` raw uses, wherever they are counted, and has `rest` give back the
    /// remainder from the word. The object may have ended after that, unless the caller keeps it.
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
/// After a step down the object may be freed: only the count may be touched here.
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

/// In an affinity: the last note was of a look. More looks change nothing, because looks alone
/// cause no contention.
const LOOK: usize = 1 << 15;
/// In an affinity, after its mark bit: the number of changes so far.
const CHANGES: usize = 0x3fff;

/// An object's shares, or the affinity that decides whether it gets some. An affinity is the thread
/// that used (or read) the object last, and how often that thread changed.
pub(super) struct Sharing {
    // Null, an affinity (odd), or shares from a box.
    state: AtomicPtr<Shares>,
}

/// An affinity that begins with this thread: odd, and without changes.
#[inline]
fn begin() -> usize {
    thread_slot() << 16 | 1
}

/// The affinity after a use by the thread of `mine`, which is not the last user of `affinity`;
/// `None` if there were enough changes.
fn changed(affinity: usize, mine: usize) -> Option<usize> {
    let changes = if affinity == 0 {
        0
    } else {
        (affinity >> 1 & CHANGES) + 1
    };
    (changes < SHARED_AFTER).then_some(mine | changes << 1)
}

/// Are there shares, rather than nothing or an affinity?
#[inline]
fn is_shares(state: *mut Shares) -> bool {
    !state.is_null() && state.addr() & 1 == 0
}

/// Is `affinity` of the same user as the new affinity `mine`?
#[inline]
fn is_of(affinity: usize, mine: usize) -> bool {
    affinity >> 16 == mine >> 16 && affinity & 1 == 1
}

impl Sharing {
    /// The affinity of an object that this thread makes and uses first. Noting it now saves an
    /// atomic exchange at the next use.
    #[inline]
    pub(super) fn begun() -> Self {
        Self {
            state: AtomicPtr::new(ptr::without_provenance_mut(begin())),
        }
    }

    /// The shares, if there are any yet.
    #[inline]
    pub(super) fn shares(&self) -> Option<&Shares> {
        // Acquire: they are built before they are published.
        let state = self.state.load(Ordering::Acquire);
        // SAFETY: neither null nor an affinity, so it is a box that lives as long as `self`.
        is_shares(state).then(|| unsafe { &*state })
    }

    /// Counts a use here; `false` if it has to be counted in the word.
    #[inline]
    pub(super) fn acquire(&self) -> bool {
        self.shares()
            // Acquire: what was done to the object before it was shared.
            .is_some_and(|shares| step(shares.counts.mine(), Ordering::Acquire, acquired))
    }

    /// Releases a use here; `false` if it has to be released in the word.
    ///
    /// # Safety
    /// `this` is of an object that the caller uses. It may be freed as soon as this returns `true`,
    /// but not earlier.
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
    /// As for [`release`](Self::release): another thread may give the raw use back at once.
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

    /// Gives back `n` raw uses that are counted on this core; `false` if there are not so many.
    #[inline]
    pub(super) fn forget(&self, n: u64) -> bool {
        self.shares().is_some_and(|shares| {
            // Release: as for a use.
            step(shares.counts.mine(), Ordering::Release, |count| {
                forgotten(count, n)
            })
        })
    }

    /// Gives back up to `n` raw uses from wherever they are counted; `rest` takes from the word.
    #[inline]
    pub(super) fn forget_anywhere<R>(&self, n: u64, rest: impl FnOnce(u64) -> R) -> R {
        match self.shares() {
            Some(shares) => shares.forget(n, rest),
            None => rest(n),
        }
    }

    /// Notes that this thread got a use of an object that is not shared. `true`: it should be
    /// shared.
    #[inline]
    pub(super) fn note(&self) -> bool {
        let mine = begin();
        let state = self.state.load(Ordering::Relaxed);
        !is_of(state.addr(), mine) && self.note_change(mine)
    }

    /// Notes that this thread reads an object that is not shared, without a use of it. `true`: it
    /// should be shared, because other threads use it in between.
    #[inline]
    pub(super) fn note_look(&self) -> bool {
        // Acquire: shares are built before they are published.
        let state = self.state.load(Ordering::Acquire);
        if state.is_null() {
            return false;
        }
        let affinity = if is_shares(state) {
            // SAFETY: a box that stays as long as `self`.
            unsafe { &*state }.affinity.load(Ordering::Relaxed)
        } else {
            state.addr()
        };
        let mine = begin() | LOOK;
        affinity & LOOK == 0 && !is_of(affinity, mine) && self.note_change(mine)
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
        let affinity = ptr::without_provenance_mut(next.unwrap_or(mine));
        // If it fails, another thread has noted its use or made shares: one change is not counted.
        let noted =
            self.state
                .compare_exchange(state, affinity, Ordering::Relaxed, Ordering::Relaxed);
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
        let mut affinity = self.state.load(Ordering::Acquire);
        loop {
            if is_shares(affinity) {
                // SAFETY: made above and never published.
                drop(unsafe { Box::from_raw(shares) });
                return self.shares();
            }
            // Release: built before they are published.
            match self
                .state
                .compare_exchange(affinity, shares, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return self.shares(),
                Err(now) => affinity = now,
            }
        }
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        // Acquire: another thread may have made them.
        let state = self.state.load(Ordering::Acquire);
        if is_shares(state) {
            // SAFETY: shares come from a box, and `&mut self` excludes other threads.
            drop(unsafe { Box::from_raw(state) });
        }
    }
}
