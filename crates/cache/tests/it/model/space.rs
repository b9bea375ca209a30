use holdfast_cache::Space;
use holdfast_types::{Errno, Result};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Space with a limit and with refusals on request; releasing what is not held is an error.
pub(crate) struct Room {
    limit: u64,
    used: AtomicU64,
    requests: AtomicU64,
    refuse_from: u64,
    refuse_count: u64,
}

impl Room {
    pub(crate) fn unlimited() -> Self {
        Self::limited(u64::MAX)
    }

    pub(crate) fn limited(limit: u64) -> Self {
        Self {
            limit,
            used: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            refuse_from: u64::MAX,
            refuse_count: 0,
        }
    }

    /// Refuses `count` requests, beginning with number `first`.
    pub(crate) fn refusing_request(first: u64, count: u64) -> Self {
        Self {
            refuse_from: first,
            refuse_count: count,
            ..Self::unlimited()
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub(crate) fn free(&self) -> u64 {
        self.limit - self.used()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(crate) fn may_refuse_at_will(&self) -> bool {
        self.refuse_count > 0
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limit < u64::MAX || self.refuse_count > 0
    }
}

impl Space for Room {
    fn reserve(&self, pages: u64) -> Result<()> {
        let request = self.requests.fetch_add(1, Relaxed);
        let refused = request >= self.refuse_from && request - self.refuse_from < self.refuse_count;
        if refused || pages > self.free() {
            return Err(Errno::ENOSPC);
        }
        self.used.fetch_add(pages, Relaxed);
        Ok(())
    }

    fn release(&self, pages: u64) {
        let before = self.used.fetch_sub(pages, Relaxed);
        assert!(before >= pages, "{pages} pages released, {before} held");
    }
}
