//! Room for a file's pages: of its owner's quota, and of the store.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_cache::{Account, CacheStats};

use crate::inode::Inode;
use crate::quota::{Check, Quotas};
use crate::store::{Behind, Grant, Intent, Reservation, Space};
use crate::types::Result;

/// Where the pages of one file come from and go to.
///
/// Its content lock is held as long as the page cache works with this: the cache's promises end
/// with the call that made them, so what is charged is what the file has when the lock is free.
///
/// What a store promised for pages is kept here until they are handed over ([`FileSpace::hand_over`]); what
/// never is goes back at the end.
pub(crate) struct FileSpace<'f> {
    quotas: &'f Quotas,
    behind: &'f dyn Behind,
    stats: &'f CacheStats,
    inode: &'f Inode,
    check: Check,
    promised: AtomicU64,
}

impl<'f> FileSpace<'f> {
    /// Pages of `inode` are charged to its owner's `quotas`, to the store, which is written `behind`, and to the cache's
    /// `stats`. `check`: do limits count?
    pub(crate) fn new(
        quotas: &'f Quotas,
        behind: &'f dyn Behind,
        stats: &'f CacheStats,
        inode: &'f Inode,
        check: Check,
    ) -> Self {
        Self {
            quotas,
            behind,
            stats,
            inode,
            check,
            promised: AtomicU64::new(0),
        }
    }

    /// The pages are about to be handed over with what else was reserved.
    pub(crate) fn hand_over(&self, reservation: &mut Reservation<'_>) {
        reservation.held().pages += self.take();
    }

    fn take(&self) -> u64 {
        // Relaxed: the lock of the file's content is held.
        match self.promised.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.promised.swap(0, Ordering::Relaxed),
        }
    }

    /// Whom the page cache charges.
    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            space: self,
            stats: self.stats,
        }
    }

    fn shrink(&self, pages: u64) {
        self.quotas
            .shrink(self.inode.mark(), pages, || self.inode.owner());
    }
}

impl holdfast_cache::Space for FileSpace<'_> {
    fn reserve(&self, pages: u64) -> Result<()> {
        let mark = self.inode.mark();
        self.quotas
            .grow(mark, pages, self.check, || self.inode.owner())?;
        let intent = Intent {
            pages,
            ..Intent::default()
        };
        match self.behind.reserve(&intent) {
            Ok(held) => {
                if held.pages > 0 {
                    self.promised.fetch_add(held.pages, Ordering::Relaxed);
                }
                Ok(())
            }
            Err(error) => {
                self.shrink(pages);
                Err(error)
            }
        }
    }

    fn release(&self, pages: u64) {
        self.behind.release(Space {
            pages,
            ..Space::default()
        });
        self.shrink(pages);
    }
}

impl Drop for FileSpace<'_> {
    fn drop(&mut self) {
        match self.take() {
            0 => {}
            pages => self.behind.give_back(Grant {
                pages,
                ..Grant::NONE
            }),
        }
    }
}
