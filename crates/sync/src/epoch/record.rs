//! What the domain knows of a thread, and how a thread pins itself.
//!
//! A thread's word holds the epoch that the thread saw when it last pinned itself, and whether it
//! still is pinned. To rely on a word, one side has to fence. The thread may fence between its word
//! and what it reads afterwards. Otherwise the thread that reads the words fences for all (see
//! [`barrier`](crate::barrier)).
//!
//! A thread begins by fencing. After some hundred pins it is *trusted* and stops: its pins are then
//! so frequent that its word mostly shows the current epoch. If it does not, the advancing thread
//! clears `trusted` and issues a barrier; see `Domain::try_advance`.
#![expect(unsafe_code, reason = "state that only the owning thread touches")]

use super::bag::{Bag, Sealed};
use crate::primitive::{AtomicBool, AtomicU64, Ordering, TRUSTED_AFTER};
use crate::primitive::{fence, here, is_available, store_fenced};
use parking_lot::Mutex;
use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;

/// In a word: the thread is pinned. The other bits are those of an epoch.
pub(super) const PINNED: u64 = 1;

/// In a count of guards: the thread will not give the record back at its end, so the last guard
/// does.
const BORROWED: u32 = 1 << 31;

/// A thread's part of the domain. Never freed: a thread that ends leaves it to the next.
#[repr(align(128))]
pub(super) struct Record {
    /// The epoch that its thread saw when it last pinned itself, and [`PINNED`] while it is pinned.
    pub(super) word: AtomicU64,
    /// Its thread does not fence its pins. Set by that thread, cleared by the advancing thread.
    pub(super) trusted: AtomicBool,
    local: UnsafeCell<Local>,
    /// Sealed bags: any thread may drop those that are due.
    pub(super) sealed: Mutex<VecDeque<Sealed>>,
    /// Values retired; written by the owner only, hence without an atomic addition.
    pub(super) retired: AtomicU64,
    /// Values of this record that were dropped, by any thread.
    pub(super) dropped: AtomicU64,
    taken: AtomicBool,
    /// The next record of the domain; fixed before the record is reachable.
    pub(super) next: Cell<Option<&'static Record>>,
}

/// What dropping a guard leaves to do.
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
    /// Destructors are running: they start no others.
    pub(super) collecting: bool,
    /// Fenced pins since trust was lost.
    fenced: u32,
    pub(super) bag: Bag,
}

// SAFETY: only the owner touches `local` (see `with_local`), and `next` is written before the
// record is published and only read afterwards. The rest is atomic or locked.
unsafe impl Sync for Record {}

impl Local {
    /// A thread takes the record.
    pub(super) fn begin(&mut self, borrowed: bool) {
        self.depth = if borrowed { BORROWED } else { 0 };
    }

    pub(super) fn guards(&self) -> u32 {
        self.depth & !BORROWED
    }

    /// Is it to be given back?
    pub(super) fn is_over(&self) -> bool {
        self.depth == BORROWED
    }

    /// Counts a guard; is it the only one?
    ///
    /// The usual case stores a constant, not the loaded count plus one, so that a pin does not wait
    /// for the stores of the pin before.
    #[inline]
    pub(super) fn enter(&mut self) -> bool {
        if self.depth == 0 {
            self.depth = 1;
            return true;
        }
        self.depth += 1;
        self.guards() == 1
    }

    /// Removes a guard from the count. For a thread that does not keep its record the answer is
    /// [`Left::Borrowed`], and the count is unchanged.
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

    /// Calls `look` with the owner's part; `look` must not call this again.
    ///
    /// # Safety
    /// Only the thread that has taken the record may call this, and not from within `look`.
    #[inline]
    pub(super) unsafe fn with_local<R>(&self, look: impl FnOnce(&mut Local) -> R) -> R {
        // SAFETY: one thread, no nesting: the reference is the only one.
        look(unsafe { &mut *self.local.get() })
    }

    /// Pins the thread in the current epoch.
    ///
    /// # Safety
    /// As for `with_local`.
    #[inline]
    pub(super) unsafe fn pin(&self, epoch: &AtomicU64) {
        // Acquire pairs with `Domain::seal`: a thread that sees an epoch sees what was unlinked
        // before it began.
        let word = epoch.load(Ordering::Acquire) | PINNED;
        // Release: the reads under the previous pin come before.
        self.word.store(word, Ordering::Release);
        here();
        // After the word, so that a barrier before the store of the word is also before this load.
        if !self.trusted.load(Ordering::Relaxed) {
            // Pairs with the fence in `Domain::try_advance`: either that thread sees the word, or
            // this one sees what was unlinked before.
            store_fenced(&self.word, word);
            // SAFETY: the caller's promise.
            unsafe { self.count_fenced() };
        }
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
            // An advancing thread that does not see `trusted` fenced before this: all later pins
            // see what it had unlinked.
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

    /// Takes the record, unless another thread has it.
    pub(super) fn try_take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed)
            // Acquire pairs with the release in `give_back`: the former owner no longer uses
            // `local`.
            && self
                .taken
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    pub(super) fn give_back(&self) {
        // Release: a thread that sees the record untrusted sees all pins of the former owner.
        self.trusted.store(false, Ordering::Release);
        self.taken.store(false, Ordering::Release);
    }
}
