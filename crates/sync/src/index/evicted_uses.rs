//! Raw uses of objects that are in the index no more.
//!
//! A raw use is given back by key, at any time, whether or not the object is in memory. So an object
//! may go while there are raw uses of it: their number stays here, and is the object's again when it comes back.
//!
//! *Invariants.* Under the lock: a key that is in the index has no raw uses here. They move to the object before it is published,
//! under the lock, and from it when it is buried, under the lock, by the step that marks it as buried. So if a lookup
//! finds an object that is not buried, the raw uses are in its word; if it finds none, under the lock, they are here.
//!
//! *Locking.* The lock is held over publishing and burying, which wait for nothing.

use super::runs::Runs;
use super::{Freeing, Index, Prepared};
use crate::epoch;
use crate::primitive::{Mutex, MutexGuard};

/// Raw uses of some keys of an [`Index`], behind a lock that orders the coming and going of their objects.
pub struct EvictedUses {
    runs: Mutex<Runs>,
}

/// The same, locked.
pub struct EvictedUsesLocked<'a> {
    runs: MutexGuard<'a, Runs>,
}

impl EvictedUses {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self {
            runs: Mutex::new(Runs::default()),
        }
    }

    /// Locks it: none of its keys comes into the index, nor leaves it, meanwhile.
    pub fn lock(&self) -> EvictedUsesLocked<'_> {
        EvictedUsesLocked {
            runs: self.runs.lock(),
        }
    }

    /// Gives back up to `n` raw uses of a key, wherever they are counted. `Some` if the last use of a doomed object was among
    /// them. Waits for nothing but the lock.
    #[must_use = "a doomed object that nobody ends stays in its index"]
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
            // Else it has come back.
            if !locked.is_in(index, key) {
                locked.forget(key, n);
                return None;
            }
        }
    }

    /// Has this key raw uses? Never `false` if it has some throughout.
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

    /// Buries an object ([`Index::free`]), and counts the raw uses that are left of it.
    pub fn free<T: Send + Sync + 'static>(&mut self, index: &Index<T>, freeing: Freeing<T>) {
        let key = freeing.key();
        self.runs.add(key, index.take_out(freeing));
    }

    /// Gives an object that is to be published under this key, with this locked, the raw uses of that.
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

impl std::fmt::Debug for EvictedUses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembered").finish_non_exhaustive()
    }
}
