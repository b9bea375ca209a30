//! The primitives under the epochs in this model: loom's atomics, and a barrier like the kernel's.
//!
//! membarrier(2) makes each thread run a fence at some moment within the call. So does
//! [`everywhere`]: it sets a request for all members, and waits until each has fenced or left. A
//! member looks for a request before each of its steps, so it may fence at every moment that makes
//! a difference. Requests and answers order no memory: loom does not see them.

pub(crate) use loom::sync::atomic::{Ordering, fence};

use loom::thread::ThreadId;
use std::cell::{Cell, RefCell};

pub(crate) const TRUSTED_AFTER: u32 = 2;

macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility fn $($function)*
    };
}
pub(crate) use constant;

// All threads of an execution are one thread of the system.
thread_local! {
    /// Does this execution have the system call?
    static AVAILABLE: Cell<bool> = const { Cell::new(true) };
    /// Is it refused since, so that barriers are walks over the processors? That is the same fence.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    /// The members, and whether a fence is requested of each.
    static MEMBERS: RefCell<Vec<(ThreadId, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Begins an execution.
pub(crate) fn begin(available: bool) {
    AVAILABLE.set(available);
    REFUSED.set(false);
    MEMBERS.with_borrow_mut(Vec::clear);
}

/// A thread that barriers reach, until this is dropped.
pub(crate) struct Member(ThreadId);

impl Member {
    pub(crate) fn new() -> Self {
        let id = loom::thread::current().id();
        MEMBERS.with_borrow_mut(|members| members.push((id, false)));
        Self(id)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The end of a thread is a fence too.
        fence(Ordering::SeqCst);
        MEMBERS.with_borrow_mut(|members| members.retain(|(id, _)| *id != self.0));
    }
}

/// Is a fence requested of the calling thread? `clear`: the request is cleared.
fn asked(clear: bool) -> bool {
    let own = loom::thread::current().id();
    MEMBERS.with_borrow_mut(|members| {
        let member = members.iter_mut().find(|(id, _)| *id == own);
        member.is_some_and(|(_, asked)| std::mem::replace(asked, *asked && !clear))
    })
}

/// A moment at which a barrier may happen.
pub(crate) fn here() {
    if asked(false) {
        // Other threads may run in between, but not pass the fence.
        fence(Ordering::SeqCst);
        asked(true);
    }
}

/// The system call is refused from now on.
pub(crate) fn refuse() {
    REFUSED.set(true);
}

pub(crate) fn is_available() -> bool {
    AVAILABLE.get() && !REFUSED.get()
}

pub(crate) fn is_due() -> bool {
    true
}

pub(crate) fn everywhere() -> bool {
    fence(Ordering::SeqCst);
    MEMBERS.with_borrow_mut(|members| members.iter_mut().for_each(|(_, asked)| *asked = true));
    asked(true);
    while MEMBERS.with_borrow(|members| members.iter().any(|(_, asked)| *asked)) {
        loom::thread::yield_now();
    }
    fence(Ordering::SeqCst);
    AVAILABLE.get()
}

pub(crate) fn store_fenced(_place: &AtomicU64, _word: u64) {
    fence(Ordering::SeqCst);
}

/// Loom's atomic, with a moment for a barrier before each step.
macro_rules! atomic {
    ($name:ident, $value:ty) => {
        pub(crate) struct $name(loom::sync::atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                here();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                here();
                self.0.store(value, order);
            }
        }
    };
}
atomic!(AtomicU64, u64);
atomic!(AtomicBool, bool);

impl AtomicBool {
    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        here();
        self.0.swap(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        old: bool,
        new: bool,
        done: Ordering,
        failed: Ordering,
    ) -> Result<bool, bool> {
        here();
        self.0.compare_exchange(old, new, done, failed)
    }
}

impl AtomicU64 {
    pub(crate) fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        here();
        self.0.fetch_add(more, order)
    }
}

pub(crate) use loom::sync::atomic::AtomicPtr;
