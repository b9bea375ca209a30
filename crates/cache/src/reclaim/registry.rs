//! All shrinkers of a memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::pass::{Entry, Registered, Totals};
use super::shrinker::Shrinker;
use super::trace::Trace;

/// The shrinkers of a memory, in the order of registration, and their trace.
#[derive(Default)]
pub struct Registry {
    /// A leaf: nothing is called while it is held.
    entries: Mutex<Vec<Weak<dyn Entry>>>,
    /// The number of shrinkers registered so far.
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
    /// Registers a shrinker of `owner`, as long as the result is kept. The owner may keep it: it
    /// holds only a weak reference to the owner.
    pub fn register<S: Shrinker>(&self, shrinker: S, owner: &Arc<S::Owner>) -> Arc<Registered<S>> {
        let number = self.count.fetch_add(1, Relaxed) + 1;
        let trace = Arc::clone(&self.trace);
        let registered = Registered::new(shrinker, Arc::downgrade(owner), number, trace);
        let registered = Arc::new(registered);
        let entry = Arc::downgrade(&registered) as Weak<dyn Entry>;
        self.entries.lock().push(entry);
        registered
    }

    /// Frees the excess of each class, on the thread that follows memory. Called with no lock held.
    pub fn shrink(&self) {
        self.live().iter().for_each(|entry| entry.shrink());
    }

    /// What the registered shrinkers have done so far, by name.
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

    /// Their trace.
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
