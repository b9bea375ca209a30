//! Memory reclamation by epochs: what a reader may still look at is not freed under it.
//!
//! A thread *pins* itself while it follows pointers that others may replace, and *retires* what it
//! took out of a structure. The global epoch advances when every pinned thread has seen it; what
//! was retired in epoch `e` is dropped from epoch `e + 2` on, when no pin that could have met
//! it is left (K. Fraser, *Practical lock-freedom*, 2004; the scheme of crossbeam-epoch).
//!
//! One domain serves the process. A pin is a store on the thread's own line. What makes sure that
//! others know of it in time is not a fence, which would wait for all that the thread has stored
//! before: a copied page, for instance. A thread that pins itself often has mostly seen the epoch of
//! the moment, and says so. Of one that has not been seen lately the truth is found out with
//! membarrier(2), once; from then on it fences, until it comes often again. So barriers are rare,
//! whatever is retired: at most one a millisecond, or less than that if nobody comes and goes.
//! Where there is no membarrier, all threads always fence (see `record.rs`).
//!
//! *Invariants.* A record belongs to one thread at a time; its `local` part is touched by that
//! thread only. A bag is sealed with an epoch read after everything in it was unlinked.
//!
//! *Locking.* A record's queue of sealed bags has a lock, taken once in a few hundred retirements;
//! destructors run with no lock held.

mod bag;
mod domain;
mod guard;
mod record;
#[cfg(test)]
mod tests;

pub use guard::{Brief, Guard};

use crate::barrier;
use bag::Deferred;
use domain::Domain;

/// The process's domain.
static DOMAIN: Domain = Domain::new();

/// Pins the calling thread: what it finds in shared structures stays until the guard is dropped.
///
/// Pins nest. Never hold one while waiting for anything: it keeps all garbage alive.
#[inline]
#[must_use]
pub fn pin() -> Guard {
    Guard::pin()
}

/// To be called before there is much to do, by whoever begins something that threads will do often: what
/// pins take is found out now, and not by the first who pin themselves. It does not wait.
pub fn prepare() {
    barrier::prepare();
}

/// Drops `value` when no thread can hold a reference from before any more. The caller has made it
/// unreachable for threads that pin themselves from now on.
///
/// The destructor runs on any thread; it must not take a lock that somebody holds while pinning,
/// retiring or waiting for [`synchronize`].
#[inline]
pub fn retire<T: Send + 'static>(value: Box<T>) {
    guard::defer(Deferred::free(value));
}

/// Hands over what this thread has retired, so that others can drop it, and drops what is due.
pub fn flush() {
    guard::flush();
}

/// Waits until all pins of this moment have ended, and drops what was retired before: by this
/// thread, by threads that ended, and by others as far as they have handed it over (they do so
/// every few hundred retirements, or by [`flush`]). What another thread is dropping at this moment may
/// still be with it when this returns; what destructors retire is in the bag of the thread they ran on.
///
/// # Panics
/// Under a guard of the calling thread: it would wait for itself.
pub fn synchronize() {
    assert!(!guard::is_pinned(), "synchronize() under a guard");
    guard::flush();
    guard::wait_for_grace();
}

/// Values retired and not dropped yet. A sum over threads: exact only while nobody retires.
#[must_use]
pub fn pending() -> u64 {
    DOMAIN.pending()
}

/// As [`retire`], for what is not a box: `drop` is called once with `value`, on any thread.
///
/// # Safety
/// `value` is unreachable for threads that pin themselves from now on, and `drop(value)` is sound
/// once, on any thread, at any later time.
#[inline]
#[expect(unsafe_code, reason = "objects that are no boxes")]
pub unsafe fn retire_with(value: *mut (), drop: unsafe fn(*mut ())) {
    // SAFETY: the caller's promise is the one asked for.
    guard::defer(unsafe { Deferred::with(value, drop) });
}
