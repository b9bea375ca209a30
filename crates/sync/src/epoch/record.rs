//! What the domain knows of a thread.
#![expect(unsafe_code, reason = "state that only the owning thread touches")]

use super::bag::{Bag, Sealed};
use parking_lot::Mutex;
use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What `epoch` holds while its thread is not pinned.
pub(super) const QUIET: u64 = 0;

/// A thread's place in the domain. Never freed: a thread that ends leaves it to the next.
#[repr(align(128))]
pub(super) struct Record {
    /// The epoch in which the thread pinned itself, or [`QUIET`].
    pub(super) epoch: AtomicU64,
    local: UnsafeCell<Local>,
    /// Sealed bags: anybody may drop those that are due.
    pub(super) sealed: Mutex<VecDeque<Sealed>>,
    /// Values retired; written by the owner only, hence without an atomic addition.
    pub(super) retired: AtomicU64,
    /// Values of this record that were dropped, by whomever.
    pub(super) dropped: AtomicU64,
    pub(super) taken: AtomicBool,
    /// The next record of the domain; fixed before the record is reachable.
    pub(super) next: Cell<Option<&'static Record>>,
}

/// What only the owning thread touches.
pub(super) struct Local {
    /// Guards alive.
    pub(super) depth: u32,
    /// Destructors are running: they do not start others.
    pub(super) collecting: bool,
    /// Without a thread's end to wait for: given back with the last guard.
    pub(super) borrowed: bool,
    pub(super) bag: Bag,
}

// SAFETY: `local` is touched by the owner only (see `with_local`), `next` is written before the
// record is published and only read afterwards; the rest is atomic or locked.
unsafe impl Sync for Record {}

impl Record {
    pub(super) fn taken() -> Self {
        Self {
            epoch: AtomicU64::new(QUIET),
            local: UnsafeCell::new(Local {
                depth: 0,
                collecting: false,
                borrowed: false,
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
        self.taken.store(false, Ordering::Release);
    }
}
