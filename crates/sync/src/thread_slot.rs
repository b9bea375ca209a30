//! A small number for each living thread, so that per-thread state can live in arrays.
//!
//! *Invariants.* Two threads alive at the same time have different numbers. Numbers stay dense: a
//! thread that ends returns its number, and the smallest free one is dealt next. So a program that
//! starts and ends threads does not pile its live threads onto a few slots.
//!
//! *Locking.* `FREE` is taken once when a thread first needs its number and once at its end; a
//! leaf.

use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeSet;

/// Numbers returned, and the first one never dealt.
struct Free {
    returned: BTreeSet<usize>,
    next: usize,
}

static FREE: Mutex<Free> = Mutex::new(Free {
    returned: BTreeSet::new(),
    next: 0,
});

const NONE: usize = usize::MAX;

thread_local! {
    // Without a destructor and with a constant initializer, so that reading it is one load.
    static SLOT: Cell<usize> = const { Cell::new(NONE) };
    static OWNER: Owner = const { Owner };
}

/// Returns the thread's number when the thread ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        let slot = SLOT.replace(NONE);
        if slot != NONE {
            FREE.lock().returned.insert(slot);
        }
    }
}

/// The number of the calling thread.
#[inline]
pub(crate) fn thread_slot() -> usize {
    let slot = SLOT.get();
    if slot == NONE { assign() } else { slot }
}

/// The number of the calling thread, if no other thread has it. `None` after the thread's
/// destructors have run: it borrows a number then.
#[inline]
pub(crate) fn own_thread_slot() -> Option<usize> {
    let slot = SLOT.get();
    if slot != NONE {
        return Some(slot);
    }
    assign();
    Some(SLOT.get()).filter(|slot| *slot != NONE)
}

#[cold]
fn assign() -> usize {
    // Once the owner's destructor has run, nothing would return a number any more. Such a thread
    // borrows slot 0, which is correct for every user here, only contended.
    if OWNER.try_with(|_| ()).is_err() {
        return 0;
    }
    let mut free = FREE.lock();
    let slot = free.returned.pop_first().unwrap_or_else(|| {
        free.next += 1;
        free.next - 1
    });
    SLOT.set(slot);
    slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn threads_alive_together_have_different_numbers() {
        let barrier = Barrier::new(16);
        let slots: HashSet<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let slot = thread_slot();
                        barrier.wait();
                        assert_eq!(slot, thread_slot());
                        slot
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(slots.len(), 16);
    }

    #[test]
    fn numbers_of_ended_threads_are_dealt_again() {
        // Other tests of this process hold some numbers, but never hundreds.
        let highest = (0..1000)
            .map(|_| thread::spawn(thread_slot).join().unwrap())
            .max()
            .unwrap();
        assert!(highest < 300, "{highest}");
    }
}
