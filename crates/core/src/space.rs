//! The account of a file's pages: its owner's quota, and the store.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_cache::Account;

use crate::core::Core;
use crate::inode::Inode;
use crate::quota::Check;
use crate::store::{Grant, Intent, Reservation, Space};
use crate::types::Result;

/// The account of the pages of one file.
///
/// Its content lock is held while the page cache uses this. The cache's reservations end with the
/// call that made them. So while the lock is free, the charge equals the pages of the file.
///
/// Pages that the store reserved are counted here until they are handed over
/// ([`FileSpace::submit`]); the rest goes back on drop.
pub(crate) struct FileSpace<'f> {
    core: &'f Core,
    inode: &'f Inode,
    check: Check,
    promised: AtomicU64,
}

impl<'f> FileSpace<'f> {
    /// Pages of `inode` are charged to its owner's quotas, to the store, and to the cache's
    /// statistics. `check`: are limits enforced?
    pub(crate) fn new(core: &'f Core, inode: &'f Inode, check: Check) -> Self {
        Self {
            core,
            inode,
            check,
            promised: AtomicU64::new(0),
        }
    }

    /// The pages will be handed over with the rest of the reservation.
    pub(crate) fn submit(&self, reservation: &mut Reservation<'_>) {
        reservation.held().pages += self.take();
    }

    fn take(&self) -> u64 {
        // Relaxed: the lock of the file's content is held.
        match self.promised.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.promised.swap(0, Ordering::Relaxed),
        }
    }

    /// The account for the page cache.
    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            space: self,
            stats: &self.core.cache,
        }
    }

    fn shrink(&self, pages: u64) {
        self.core
            .quotas
            .shrink(self.inode.mark(), pages, || self.inode.owner());
    }
}

impl holdfast_cache::Space for FileSpace<'_> {
    fn reserve(&self, pages: u64) -> Result<()> {
        hop!();
        let mark = self.inode.mark();
        self.core
            .quotas
            .grow(mark, pages, self.check, || self.inode.owner())?;
        let intent = Intent {
            pages,
            ..Intent::default()
        };
        match self.core.behind.reserve(&intent) {
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
        self.core.behind.release(Space {
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
            pages => self.core.behind.give_back(Grant {
                pages,
                ..Grant::NONE
            }),
        }
    }
}
