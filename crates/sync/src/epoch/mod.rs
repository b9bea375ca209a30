//! Memory reclamation by epochs: what a reader may still look at is not freed under it.
//!
//! A thread *pins* itself while it follows pointers that others may replace, and *retires* what it
//! took out of a structure. The global epoch advances when every pinned thread has seen it. What
//! was retired in epoch `e` is dropped from epoch `e + 2` on, when no pin that could have seen it
//! is left (K. Fraser, *Practical lock-freedom*, 2004; the scheme of crossbeam-epoch).
//!
//! One domain serves the process. A pin is a plain store on the thread's own line, without a fence:
//! a fence would wait for all earlier stores of the thread, a copied page for instance. A thread
//! that pins often has mostly seen the current epoch, and its record shows that. For a thread that
//! was silent, the advancing thread finds out with membarrier(2), once. From then on the silent
//! thread fences, until it pins often again. So barriers are rare, however much is retired: at most
//! one a millisecond, and none while all threads pin. Without membarrier all threads fence every
//! pin (see `record.rs`).
//!
//! *Invariants.* A record belongs to one thread at a time, and only that thread touches its `local`
//! part. A bag is sealed with an epoch read after everything in it was unlinked.
//!
//! *Locking.* A record's queue of sealed bags has a lock, taken once in a few hundred retirements.
//! Destructors run with no lock held.

mod bag;
mod domain;
mod guard;
mod record;
#[cfg(test)]
mod tests;

pub use guard::Guard;

use crate::barrier;
use bag::Deferred;

/// Pins the calling thread: what it finds in shared structures stays until the guard is dropped.
///
/// Pins nest. A guard must not be held while waiting for anything: it keeps all garbage alive.
#[inline]
#[must_use]
pub fn pin() -> Guard {
    Guard::pin()
}

/// Asks early whether membarrier is available, so that the first pins need not. To be called before
/// threads pin often. It does not wait.
pub fn prepare() {
    barrier::prepare();
}

/// Hands over what this thread has retired, so that others can drop it, and drops what is due.
pub fn flush() {
    guard::flush();
}

/// Waits until all current pins have ended, and drops what was retired before. That is what this
/// thread retired, what ended threads did, and what others have handed over (every few hundred
/// retirements, or by [`flush`]). Values that another thread is just dropping may still exist when
/// this returns. What destructors retire is in the bag of the thread that ran them.
///
/// # Panics
/// Under a guard of the calling thread: it would wait for itself.
pub fn synchronize() {
    assert!(!guard::is_pinned(), "synchronize() under a guard");
    guard::flush();
    guard::wait_for_grace();
}

/// Values retired and not dropped yet. A sum over threads: exact only while no thread retires.
#[must_use]
pub fn pending() -> u64 {
    guard::DOMAIN.pending()
}

/// Calls `drop(value)` once when no thread can hold an older reference to `value` any more.
///
/// `drop` runs on any thread. It must not take a lock that a thread holds while pinning, retiring
/// or waiting for [`synchronize`].
///
/// # Safety
/// `value` is unreachable for threads that pin themselves from now on, and `drop(value)` is sound
/// once, on any thread, at any later time.
#[inline]
#[expect(unsafe_code, reason = "objects of any type")]
pub unsafe fn retire_with(value: *mut (), drop: unsafe fn(*mut ())) {
    // SAFETY: the caller's promise is the one asked for.
    guard::defer(unsafe { Deferred::with(value, drop) });
}
