//! Idle threads that wait for the next append.
//!
//! *Invariant.* A thread that goes idle sets `begun` before it looks into the log buffers, under
//! their locks. It sees every append made before its look. A later append sees `begun`, by the
//! buffer's lock, and calls `rouse`.

use crate::primitive::{AtomicU64, Mutex, Ordering};
use std::fmt;
use std::sync::Arc;

/// The callback that ends an idle period.
type Rouse = Arc<dyn Fn() + Send + Sync>;

/// Whether a thread is idle.
pub(super) struct Rest {
    /// 1 while a thread is idle.
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

    /// Sets the callback.
    pub(super) fn on_end(&self, rouse: impl Fn() + Send + Sync + 'static) {
        *self.rouse.lock() = Some(Arc::new(rouse));
    }

    /// Begins an idle period.
    pub(super) fn begin(&self) {
        // Relaxed: the log buffers' locks order it.
        self.begun.store(1, Ordering::Relaxed);
    }

    /// Called by an append that opened a frame.
    #[cold]
    pub(super) fn end(&self) {
        // Relaxed: as above. Loaded first, since all appending threads share the cache line.
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
