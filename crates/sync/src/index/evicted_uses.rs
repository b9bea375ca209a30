//! Raw uses of objects that are not in the index any more.
//!
//! A raw use is given back by key, at any time, whether or not the object is in memory. So an
//! object may be evicted while it has raw uses. Their number is kept here, and returns to the
//! object when that is inserted again.
//!
//! *Invariants.* Under the lock, a key that is in the index has no raw uses here. They move to the
//! object, under the lock, before it is published. They move from it, under the lock, by the step
//! that marks it as taken out. So if a lookup finds an object that is not taken out, its raw uses
//! are in its word. If a lookup under the lock finds none, they are here.
//!
//! *Locking.* The lock is held over publishing and freeing, which do not wait.

use super::freeing::Freeing;
use super::map::Index;
use super::prepared::Prepared;
use super::runs::Runs;
use crate::epoch;
use crate::primitive::{Mutex, MutexGuard};

/// Raw uses of evicted keys of an [`Index`], under a lock that orders the insertion and removal of
/// their objects.
pub struct EvictedUses {
    runs: Mutex<Runs>,
}

/// An [`EvictedUses`], locked.
pub struct EvictedUsesLocked<'a> {
    runs: MutexGuard<'a, Runs>,
}

impl EvictedUses {
    /// Without any.
    #[must_use]
    pub fn new() -> Self {
        Self {
            runs: Mutex::new(Runs::default()),
        }
    }

    /// Locks it: none of its keys is inserted into the index or removed meanwhile.
    pub fn lock(&self) -> EvictedUsesLocked<'_> {
        EvictedUsesLocked {
            runs: self.runs.lock(),
        }
    }

    /// Gives back up to `n` raw uses of a key, wherever they are counted. `Some` if the last use of
    /// a marked object was among them. Waits for nothing but the lock.
    #[must_use = "a marked object that is not freed stays in its index"]
    pub fn forget<T: Send + Sync + 'static>(
        &self,
        index: &Index<T>,
        key: u64,
        n: u64,
    ) -> Option<Freeing<T>> {
        loop {
            {
                let guard = epoch::pin();
                let held = index.peek(key, &guard);
                if let Some(Ok(end)) = held.map(|held| held.try_forget(n)) {
                    return end;
                }
            }
            let mut locked = self.lock();
            // Otherwise it was inserted again: retry.
            if !locked.is_in(index, key) {
                locked.forget(key, n);
                return None;
            }
        }
    }

    /// Has this key raw uses? Never `false` if it has some throughout the call.
    pub fn may_be_held<T: Send + Sync + 'static>(&self, index: &Index<T>, key: u64) -> bool {
        loop {
            {
                let guard = epoch::pin();
                let held = index.peek(key, &guard);
                if let Some(may_be) = held.and_then(|held| held.may_have_raw_uses()) {
                    return may_be;
                }
            }
            let locked = self.lock();
            if !locked.is_in(index, key) {
                return locked.runs.get(key) > 0;
            }
        }
    }
}

impl EvictedUsesLocked<'_> {
    fn is_in<T: Send + Sync + 'static>(&self, index: &Index<T>, key: u64) -> bool {
        index.peek(key, &epoch::pin()).is_some()
    }

    /// Frees an object ([`Index::free`]), and keeps the number of its raw uses.
    pub fn free<T: Send + Sync + 'static>(&mut self, index: &Index<T>, freeing: Freeing<T>) {
        let key = freeing.key();
        self.runs.add(key, index.take_out(freeing));
    }

    /// Moves the raw uses of `key` to an object that is to be published under it before this is
    /// unlocked.
    #[must_use]
    pub fn give_back<T: Send + Sync + 'static>(
        &mut self,
        key: u64,
        prepared: Prepared<T>,
    ) -> Prepared<T> {
        prepared.with_raw_uses(self.runs.take(key))
    }

    /// Gives back raw uses that are counted here, and nothing else.
    pub(crate) fn forget(&mut self, key: u64, n: u64) {
        self.runs.forget(key, n);
    }

    /// What is counted here.
    #[must_use]
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self.runs = Runs::default();
    }
}

impl Default for EvictedUses {
    fn default() -> Self {
        Self::new()
    }
}
