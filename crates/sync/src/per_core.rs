use crate::padded::Padded;
use crate::parallel::processors;
use crate::thread_slot::{own_thread_slot, thread_slot};
use std::sync::atomic::{AtomicUsize, Ordering};

/// One `T` for each core, each on cache lines of its own.
///
/// A thread uses the same `T` for its whole life. There are at least twice as many slots as cores,
/// dealt to threads in turn. With more threads than slots some threads share one, so `T` must be
/// safe to share (an atomic, a lock). Sharing costs time, never correctness.
#[derive(Debug)]
pub struct PerCore<T> {
    // The length is a power of two.
    slots: Box<[Padded<T>]>,
}

const SLOTS_MIN: usize = 8;
const SLOTS_MAX: usize = 512;

/// How many slots this machine gets. Finding that out reads files, so it is done once.
pub(crate) fn slots() -> usize {
    static SLOTS: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: the number publishes nothing else.
    let known = SLOTS.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let slots = (processors() * 2).next_power_of_two();
    let slots = slots.clamp(SLOTS_MIN, SLOTS_MAX);
    SLOTS.store(slots, Ordering::Relaxed);
    slots
}

impl<T> PerCore<T> {
    /// Makes every slot by calling `init`.
    #[must_use]
    pub fn new(init: impl Fn() -> T) -> Self {
        Self {
            slots: (0..slots()).map(|_| Padded(init())).collect(),
        }
    }

    /// The calling thread's own slot.
    #[inline]
    #[must_use]
    pub fn mine(&self) -> &T {
        &self.slots[thread_slot() & (self.slots.len() - 1)].0
    }

    /// The calling thread's own slot, if no other thread writes it (as long as all writers use this
    /// method). A load and a store then suffice in place of an atomic exchange.
    #[inline]
    #[must_use]
    pub fn own(&self) -> Option<&T> {
        self.get(own_thread_slot()?)
    }

    /// The slot of this number, if it exists.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot).map(|slot| &slot.0)
    }

    /// All slots, for a sum.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.0)
    }
}

impl<T: Default> Default for PerCore<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::thread;

    #[test]
    fn a_thread_always_meets_its_own_slot() {
        let lists = PerCore::<Mutex<Vec<u32>>>::default();
        thread::scope(|scope| {
            for thread in 0..3 {
                let lists = &lists;
                scope.spawn(move || {
                    for _ in 0..100 {
                        lists.mine().lock().push(thread);
                    }
                    let whole = lists.mine().lock().iter().filter(|&&t| t == thread).count();
                    assert_eq!(whole, 100);
                });
            }
        });
        assert_eq!(
            lists.iter().map(|list| list.lock().len()).sum::<usize>(),
            300
        );
    }
}
