//! What the domain knows of a thread, and how a thread pins itself.
//!
//! A thread's word says which epoch it saw when it last pinned itself, and whether it still is. To
//! be sure that a word is up to date, one side has to fence: the thread, between its word and what
//! it reads afterwards, or whoever looks at the words, for all threads (see
//! [`barrier`](crate::barrier)).
//!
//! A thread begins by fencing. After some hundred pins it is *trusted* and does no longer: its
//! pins are then so frequent that its word alone mostly shows that it is up to date. When it is not,
//! trust is withdrawn and a barrier settles what was under way; see `Domain::try_advance`.
#![expect(unsafe_code, reason = "state that only the owning thread touches")]

use super::bag::{Bag, Sealed};
use crate::primitive::{AtomicBool, AtomicU64, Ordering, TRUSTED_AFTER};
use crate::primitive::{fence, here, is_available, settle};
use parking_lot::Mutex;
use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;

/// In a word: the thread is pinned. The other bits are those of an epoch.
pub(super) const PINNED: u64 = 1;

/// In a count of guards: the record is without a thread's end to wait for, and given back with the last one.
const BORROWED: u32 = 1 << 31;

/// A thread's place in the domain. Never freed: a thread that ends leaves it to the next.
#[repr(align(128))]
pub(super) struct Record {
    /// The epoch that its thread saw when it pinned itself last, and [`PINNED`] as long as it is.
    pub(super) word: AtomicU64,
    /// Its thread does not fence its pins. Set by the thread, cleared by whoever looks at the words.
    pub(super) trusted: AtomicBool,
    local: UnsafeCell<Local>,
    /// Sealed bags: anybody may drop those that are due.
    pub(super) sealed: Mutex<VecDeque<Sealed>>,
    /// Values retired; written by the owner only, hence without an atomic addition.
    pub(super) retired: AtomicU64,
    /// Values of this record that were dropped, by whomever.
    pub(super) dropped: AtomicU64,
    taken: AtomicBool,
    /// The next record of the domain; fixed before the record is reachable.
    pub(super) next: Cell<Option<&'static Record>>,
}

/// What the end of a guard leaves behind.
pub(super) enum Left {
    /// It was the last one.
    Unpinned,
    /// There are others.
    Pinned,
    /// The record may have to be given back.
    Borrowed,
}

/// What only the owning thread touches.
pub(super) struct Local {
    /// Guards alive; and [`BORROWED`].
    depth: u32,
    /// Destructors are running: they do not start others.
    pub(super) collecting: bool,
    /// Fenced pins since trust was withdrawn.
    fenced: u32,
    pub(super) bag: Bag,
}

// SAFETY: `local` is touched by the owner only (see `with_local`), `next` is written before the
// record is published and only read afterwards; the rest is atomic or locked.
unsafe impl Sync for Record {}

impl Local {
    /// A thread takes it.
    pub(super) fn begin(&mut self, borrowed: bool) {
        self.depth = if borrowed { BORROWED } else { 0 };
    }

    pub(super) fn guards(&self) -> u32 {
        self.depth & !BORROWED
    }

    /// Is there no guard, in a thread that keeps its record?
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.depth == 0
    }

    /// Is it to be given back?
    pub(super) fn is_over(&self) -> bool {
        self.depth == BORROWED
    }

    /// Counts a guard; is it the only one?
    ///
    /// What is usual is stored as it is, not as one more than what was loaded: so the next pin need not wait
    /// for the stores of this one.
    #[inline]
    pub(super) fn enter(&mut self) -> bool {
        if self.depth == 0 {
            self.depth = 1;
            return true;
        }
        self.depth += 1;
        self.guards() == 1
    }

    /// Counts a guard no more. Of a thread that keeps its record that is all; else the answer is
    /// [`Left::Borrowed`], with nothing counted.
    #[inline]
    pub(super) fn leave(&mut self) -> Left {
        match self.depth {
            1 => {
                self.depth = 0;
                Left::Unpinned
            }
            BORROWED.. => Left::Borrowed,
            depth => {
                self.depth = depth - 1;
                Left::Pinned
            }
        }
    }

    pub(super) fn leave_borrowed(&mut self) {
        self.depth -= 1;
    }
}

impl Record {
    pub(super) fn taken() -> Self {
        Self {
            word: AtomicU64::new(0),
            trusted: AtomicBool::new(false),
            local: UnsafeCell::new(Local {
                depth: 0,
                collecting: false,
                fenced: 0,
                bag: Bag::new(),
            }),
            sealed: Mutex::new(VecDeque::new()),
            retired: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            taken: AtomicBool::new(true),
            next: Cell::new(None),
        }
    }

    /// Shows the owner's part to `look`, which must not come back here.
    ///
    /// # Safety
    /// Only the thread that has taken the record may call this, and not from within `look`.
    #[inline]
    pub(super) unsafe fn with_local<R>(&self, look: impl FnOnce(&mut Local) -> R) -> R {
        // SAFETY: one thread, no nesting: the reference is the only one.
        look(unsafe { &mut *self.local.get() })
    }

    /// Pins the thread in the epoch of the moment.
    ///
    /// # Safety
    /// As for `with_local`.
    #[inline]
    pub(super) unsafe fn pin(&self, epoch: &AtomicU64) {
        // Acquire pairs with `Domain::seal`: who sees an epoch sees what was unlinked before it began.
        let word = epoch.load(Ordering::Acquire) | PINNED;
        // Release: the reads of the pin before come before.
        self.word.store(word, Ordering::Release);
        here();
        // Behind the word, so that a barrier which comes before the word comes before this too.
        if !self.trusted.load(Ordering::Relaxed) {
            // Pairs with the fence in `Domain::try_advance`: either the word is seen there, or what
            // was unlinked before is seen here.
            settle(&self.word, word);
            // SAFETY: the caller's promise.
            unsafe { self.count_fenced() };
        }
    }

    /// As [`pin`](Self::pin) if the thread is trusted; else the answer is `false`, and it is to be
    /// [unpinned](Self::unpin).
    #[inline(always)]
    pub(super) fn pin_if_trusted(&self, epoch: &AtomicU64) -> bool {
        // All as in `pin`.
        let word = epoch.load(Ordering::Acquire) | PINNED;
        self.word.store(word, Ordering::Release);
        here();
        self.trusted.load(Ordering::Relaxed)
    }

    /// # Safety
    /// As for `with_local`.
    unsafe fn count_fenced(&self) {
        let count = |local: &mut Local| {
            local.fenced += 1;
            local.fenced >= TRUSTED_AFTER
        };
        // SAFETY: the caller's promise.
        if unsafe { self.with_local(count) } {
            // SAFETY: the caller's promise.
            unsafe { self.with_local(|local| local.fenced = 0) };
            self.trust();
        }
    }

    /// From now on pins go without a fence.
    #[cold]
    fn trust(&self) {
        if is_available() {
            self.trusted.store(true, Ordering::Relaxed);
            // Who does not see it has fenced before: what he unlinked before is seen by all pins to
            // come.
            fence(Ordering::SeqCst);
        }
    }

    /// Ends the pin.
    #[inline]
    pub(super) fn unpin(&self) {
        // Only this thread writes it.
        let word = self.word.load(Ordering::Relaxed);
        // Release: the reads under the pin come before.
        self.word.store(word & !PINNED, Ordering::Release);
    }

    /// Takes the record, if nobody has it.
    pub(super) fn try_take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed)
            // Acquire pairs with the release in `give_back`: the former owner is done with `local`.
            && self
                .taken
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    pub(super) fn give_back(&self) {
        // Release: whoever sees that nobody is trusted here any more sees all pins that were.
        self.trusted.store(false, Ordering::Release);
        self.taken.store(false, Ordering::Release);
    }
}
