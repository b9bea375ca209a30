//! All shrinkers of a memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::pass::{Entry, Registered, Totals};
use super::shrinker::Shrinker;
use super::trace::Trace;

/// The shrinkers that free what is too much of a memory, in the order in which they came, and what is recorded of them.
#[derive(Default)]
pub struct Registry {
    /// A leaf: nothing is asked while it is held.
    entries: Mutex<Vec<Weak<dyn Entry>>>,
    /// So many have come.
    count: AtomicU32,
    trace: Arc<Trace>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("entries", &self.entries.lock().len())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Adds a shrinker of this owner, for as long as what comes back is kept. The owner may keep it: it is not kept by it.
    pub fn register<S: Shrinker>(&self, shrinker: S, owner: &Arc<S::Owner>) -> Arc<Registered<S>> {
        let number = self.count.fetch_add(1, Relaxed) + 1;
        let trace = Arc::clone(&self.trace);
        let registered = Registered::new(shrinker, Arc::downgrade(owner), number, trace);
        let registered = Arc::new(registered);
        let entry = Arc::downgrade(&registered) as Weak<dyn Entry>;
        self.entries.lock().push(entry);
        registered
    }

    /// Frees what is too much of each class, as the thread that follows memory does. With nothing locked.
    pub fn shrink(&self) {
        self.live().iter().for_each(|entry| entry.shrink());
    }

    /// What the shrinkers that are there have done so far, by their names.
    #[must_use]
    pub fn totals(&self) -> BTreeMap<&'static str, Totals> {
        let mut sums = BTreeMap::<_, Totals>::new();
        for entry in self.live() {
            let (name, totals) = entry.totals();
            let sum = sums.entry(name).or_default();
            sum.passes += totals.passes;
            sum.scanned += totals.scanned;
            sum.freed += totals.freed;
            sum.deferred += totals.deferred;
            sum.nanoseconds += totals.nanoseconds;
            sum.nanoseconds_followed += totals.nanoseconds_followed;
        }
        sums
    }

    /// What is recorded of them.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn live(&self) -> Vec<Arc<dyn Entry>> {
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.strong_count() > 0);
        entries.iter().filter_map(Weak::upgrade).collect()
    }
}
