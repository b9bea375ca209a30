//! The rest of threads that have nothing to do until something is appended.
//!
//! *Invariant.* A thread that begins a rest does so before it looks at the lanes, under their locks. An append that comes to
//! its lane earlier is seen there; one that comes later sees, by the lane's lock, that the rest has begun, and ends it.

use crate::primitive::{AtomicU64, Mutex, Ordering};
use std::fmt;
use std::sync::Arc;

/// What ends a rest.
type Rouse = Arc<dyn Fn() + Send + Sync>;

/// Whether a thread rests.
pub(super) struct Rest {
    /// 1: one does.
    begun: AtomicU64,
    rouse: Mutex<Option<Rouse>>,
}

impl Rest {
    pub(super) fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            rouse: Mutex::new(None),
        }
    }

    /// Has the end of a rest call this.
    pub(super) fn ends_by(&self, rouse: impl Fn() + Send + Sync + 'static) {
        *self.rouse.lock() = Some(Arc::new(rouse));
    }

    /// Begins one.
    pub(super) fn begin(&self) {
        // Relaxed: the lanes' locks order it.
        self.begun.store(1, Ordering::Relaxed);
    }

    /// An append was the first in its frame.
    #[cold]
    pub(super) fn end(&self) {
        // Relaxed: as above. Looked at first, since all threads that append share the line.
        if self.begun.load(Ordering::Relaxed) == 1 && self.begun.swap(0, Ordering::Relaxed) == 1 {
            let rouse = self.rouse.lock().clone();
            if let Some(rouse) = rouse {
                rouse();
            }
        }
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}
